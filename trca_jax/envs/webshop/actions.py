"""What both sides of the counter must know: kinds of pages, buttons, and how an action is written."""

from __future__ import annotations

SEARCH, RESULTS, ITEM, SUB_PAGE, DONE = "search", "results", "item", "sub-page", "done"
SUB_PAGES = ("description", "features", "reviews")
BACK, PREVIOUS, NEXT, BUY = "back to search", "< prev", "next >", "buy now"
SEPARATOR = " [SEP] "  # between the parts of a page
BUTTONS = (BACK, PREVIOUS, NEXT, *SUB_PAGES, BUY)
ACTIONS = ("search[{words}]", *(f"click[{button}]" for button in BUTTONS), "click[{product or option}]")


def parse_action(action: str) -> tuple[str, str]:
    """Verb and argument of `verb[argument]`, the argument in lower case; ('', '') for any other text.

    Both are on the first line and not empty. The last bracket closes, the last one before it that leaves an argument
    opens, and what stands behind counts for nothing: WebShop's `(.+)\\[(.+)\\]`, in time that grows with the length.

    >>> parse_action("click[Buy Now] please")
    ('click', 'buy now')
    """
    line = action.partition("\n")[0]
    stop = line.rfind("]")
    start = line.rfind("[", 1, max(stop - 1, 0))
    return (line[:start], line[start + 1 : stop].lower()) if start > 0 else ("", "")
