"""Pages as WebShop's text environment writes them: `text`, one line of parts, and `text_rich`, one part a line.

Source: spec/webshop.md section 3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from trca_jax.envs.webshop.actions import DONE, ITEM, RESULTS, SEARCH, SEPARATOR
from trca_jax.envs.webshop.engine import Shop, State

_DONE = (
    "Thank you for shopping with us!", "Your code: ", "None", " (Paste it in your MTurk interface.)", "Purchased",
    "asin", "{asin}", "options", "{options}", "attrs", "None", "category", "None", "query", "None", "product category",
    "None", "Target", "asin", "options", "attrs", "price upper", "instuction text", "category", "product category",
    "query", "Goal ", "None", "Reward", "Your score (min 0.0, max 1.0)", "{score}", "Reward Details ", "None",
)  # fmt: skip
_HTML_SAFE = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&'"})

Node = tuple[str, str]  # kind ('text', 'button', 'option' or 'product') and text


def text(shop: Shop, state: State, instruction: str) -> str:
    """The page's parts without outer blanks, joined by ' [SEP] '."""
    return SEPARATOR.join(part.strip() for _, part in _visible(shop, state, instruction))


def text_rich(shop: Shop, state: State, instruction: str) -> str:
    """The page a part a line, buttons marked. A chosen option is marked where its text stands in quotes in WebShop's
    address of the page, so one with a double quote or outside ASCII never is."""
    address = f"{'+'.join(state.keywords or ())}/{state.number}/{json.dumps(dict(state.options))}"
    lines, clicked = [], []
    for kind, part in _visible(shop, state, instruction):
        chosen = (kind == "option" and f'"{part}"' in address) or (kind == "product" and part in state.opened)
        button = f"[clicked button] {part} [clicked button_]" if chosen else f"[button] {part} [button_]"
        if kind == "option" and chosen:
            clicked.insert(0, f"You have clicked {part}.")
        lines.append({"text": part, "button": button, "option": f"  {button}", "product": f"\n{button}"}[kind])
    return "".join(f"{line}\n" for line in (*clicked, *lines))


def _visible(shop: Shop, state: State, instruction: str) -> Iterator[Node]:
    """An empty text makes no part, a blank one does, a single line break does not."""
    return (node for node in _nodes(shop, state, instruction) if node[1] not in ("", "\n"))


def _nodes(shop: Shop, state: State, instruction: str) -> Iterator[Node]:
    if state.page == DONE:
        options = json.dumps(dict(state.options), sort_keys=True).translate(_HTML_SAFE)
        values = {"{asin}": state.product.asin, "{options}": options, "{score}": str(state.outcome.total)}
        yield from (("text", values.get(part, part)) for part in _DONE)
        return
    if state.page == SEARCH:
        yield from (("text", "WebShop"), ("text", "Instruction: "), ("text", instruction), ("button", "Search"))
        return
    yield from (("text", "Instruction:"), ("text", instruction), ("button", "Back to Search"))
    if state.page == RESULTS:
        yield "text", f"Page {state.number} (Total results: {len(state.found)})"
        if state.number > 1:
            yield "button", "< Prev"
        yield "button", "Next >"
        for product in shop.shown(state):
            yield from (("product", product.asin), ("text", product.title), ("text", product.price_tag))
        return
    product = state.product
    yield "button", "< Prev"
    if state.page == ITEM:
        for name, values in product.options.items():
            yield "text", name
            yield from (("option", value) for value in values)
        yield from (("text", product.title), ("text", f"Price: {product.price_tag}"), ("text", "Rating: N.A."))
        yield from (("button", name) for name in ("Description", "Features", "Reviews", "Buy Now"))
    elif state.sub_page == "description":
        yield "text", product.description
    elif state.sub_page == "features":
        yield from (("text", f" {bullet}") for bullet in product.bullets)
