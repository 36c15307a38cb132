"""What both sides of the counter must know: kinds of pages, buttons, and how an action is written."""

from __future__ import annotations

import re

SEARCH, RESULTS, ITEM, SUB_PAGE, DONE = "search", "results", "item", "sub-page", "done"
SUB_PAGES = ("description", "features", "reviews")
BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
SEPARATOR = " [SEP] "  # between the parts of a page
BUTTONS = (BACK, PREVIOUS, NEXT, *SUB_PAGES, BUY)
ACTIONS = ("search[{words}]", *(f"click[{button}]" for button in BUTTONS), "click[{product or option}]")
_ACTION = re.compile(r"(.+)\[(.+)\]")  # greedy, and what stands after the last bracket counts for nothing


def parse_action(action: str) -> tuple[str, str]:
    """Verb and argument of `verb[argument]`, the argument in lower case; ('', '') for any other text.

    >>> parse_action("click[Buy Now] please")
    ('click', 'buy now')
    """
    match = _ACTION.match(action)
    return (match[1], match[2].lower()) if match else ("", "")
