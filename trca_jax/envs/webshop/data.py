"""Where catalogues come from: the generator, or a folder of WebShop or verl-agent; loaded once a process."""

from __future__ import annotations

import os
import warnings
from functools import lru_cache
from pathlib import Path

from trca_jax.envs.bm25 import Index, cached_index
from trca_jax.envs.webshop.catalog import ATTRIBUTES, HUMAN, ITEMS, TITLE_NOUNS, Product, make_products, read_json
from trca_jax.envs.webshop.engine import Shop
from trca_jax.envs.webshop.nouns import with_nouns

GENERATED = "generated"
SIZES = ("_1000", "")  # the small set first: it is verl-agent's default
_LARGE = 20_000  # products; from here on the search index is kept on disk


def cache_folder() -> Path:
    """Where search indexes of large catalogues are kept: `$TRCA_CACHE/webshop`, by default
    `~/.cache/trca_jax/webshop`."""
    return Path(os.environ.get("TRCA_CACHE") or Path.home() / ".cache" / "trca_jax") / "webshop"


def load_products(source: str) -> tuple[Product, ...]:
    """The products of a catalogue.

    source: "generated"; a folder that holds items_shuffle_1000.json and items_ins_v2_1000.json (or, without them,
    items_shuffle.json and items_ins_v2.json of the full set), itself or in `data`; or one of the items files. People's
    instructions (items_human_ins.json) and title_nouns.json are used if they lie beside.
    Raises ValueError naming the file that is missing, cut short or wrong.
    """
    if source == GENERATED:
        from trca_jax.envs.webshop.generator import files

        made = files()
        return make_products(made[ITEMS], made[ATTRIBUTES], made[HUMAN], made[TITLE_NOUNS], "the generated catalogue")
    items = _items_file(source)
    size = items.stem.removeprefix(ITEMS)
    attributes = read_json(_beside(items, ATTRIBUTES, size), dict)
    human = _beside(items, HUMAN, size, needed=False)
    nouns = _beside(items, TITLE_NOUNS, size, needed=False)
    products = make_products(
        read_json(items, list),
        attributes,
        read_json(human, dict) if human else {},
        _noun_lists(nouns) if nouns else {},
        str(items),
    )
    return with_nouns(products)


def holds_catalogue(source: str) -> bool:
    """Whether a catalogue lies there, be it complete or not; False for "generated"."""
    try:
        return source != GENERATED and bool(_items_file(source))
    except ValueError:
        return False


def _items_file(source: str) -> Path:
    path = Path(os.path.expanduser(source))
    if path.is_file():
        if not path.stem.startswith(ITEMS):
            raise ValueError(f"{path} is no catalogue: expected a file {ITEMS}.json or {ITEMS}_1000.json")
        return path
    if not path.is_dir():
        raise ValueError(
            f"no WebShop data at {source!r}: no such folder or file; expected 'generated', or a folder that holds "
            f"{ITEMS}_1000.json, which launch/fetch_webshop.py downloads"
        )
    names = [folder / f"{ITEMS}{size}.json" for folder in (path, path / "data") for size in SIZES]
    found = next((name for name in names if name.is_file()), None)
    if found is None:
        raise ValueError(
            f"the folder {path} holds no WebShop catalogue: expected {' or '.join(name.name for name in names[:2])} in "
            "it or in its folder data; launch/fetch_webshop.py downloads the small one"
        )
    return found


def _beside(items: Path, name: str, size: str, needed: bool = True) -> Path | None:
    """The file that goes with an items file: of the same size, or the one for all sizes."""
    candidates = [items.with_name(f"{name}{size}.json"), items.with_name(f"{name}.json")]
    found = next((path for path in candidates if path.is_file()), None)
    if found is None and needed:
        raise ValueError(f"{items} is there, but not {candidates[0].name} beside it; fetch the data again")
    return found


def _noun_lists(path: Path) -> dict[str, list[str]]:
    lists = read_json(path, dict)
    lists = lists.get("nouns", lists)
    if not isinstance(lists, dict):
        raise ValueError(f"{path}: its nouns are a {type(lists).__name__}, expected an object of lists by asin")
    return lists


@lru_cache(maxsize=2)
def load_shop(source: str) -> Shop:
    """The catalogue of `load_products` with its search index; every session of the process shares it."""
    products = load_products(source)
    texts, names = [product.document() for product in products], [product.asin for product in products]
    try:
        large = len(products) >= _LARGE
        return Shop(products, cached_index(texts, names, cache_folder()) if large else Index.build(texts, names))
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from None
    except OSError as error:
        warnings.warn(f"the search index is not kept: {error}; set TRCA_CACHE to a folder with room", stacklevel=2)
        return Shop(products, Index.build(texts, names))
