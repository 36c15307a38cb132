"""Searches made of an instruction's own words, for policies that choose among commands instead of writing."""

from __future__ import annotations

from trca_jax.envs.webshop.binder import read_wish


def offered_queries(instruction: str) -> tuple[str, ...]:
    """Different queries, from the bare kind of product to all that is asked for, in lower case without brackets.

    >>> offered_queries("Find me slim fit men's dress shirts with long sleeve with color: navy")
    ('dress shirts', "slim fit men's dress shirts", "slim fit men's dress shirts with long sleeve", 'navy dress shirts')
    """
    wish = read_wish(instruction)
    kind = " ".join(wish.kind_words)
    queries = [kind, wish.head, wish.base]
    if wish.options:
        queries.append(f"{' '.join(wish.options.values())} {kind}")
    cleaned = (" ".join(query.lower().translate(_BRACKETS).split()) for query in queries)
    return tuple(dict.fromkeys(query for query in cleaned if query)) or ("anything",)


_BRACKETS = {ord(char): " " for char in "[]"}
