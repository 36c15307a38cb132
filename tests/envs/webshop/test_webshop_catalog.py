"""The loader's rules, and what is said about files that are not as they should be."""

import json
import shutil

import pytest
from webshop_worlds import item, real

from trca_jax.envs.webshop import data
from trca_jax.envs.webshop.catalog import make_products, read_price
from trca_jax.envs.webshop.data import load_products
from trca_jax.envs.webshop.engine import TOP


def product(**changes):
    return make_products([item(**changes)], {})[0]


def test_the_real_catalogue_is_as_counted(shared_data):
    shop, _ = real(shared_data)
    products = shop.products
    assert len(products) == 1000
    categories = [p.category for p in products]
    assert {c: categories.count(c) for c in set(categories)} == {
        "beauty": 238, "electronics": 229, "garden": 216, "fashion": 200, "grocery": 117
    }  # fmt: skip
    assert sum(bool(p.options) for p in products) == 423
    assert [sum(len(p.options) == n for p in products) for n in (1, 2, 3)] == [245, 165, 13]
    assert sum(len(p.price_range) == 2 for p in products) == 93
    assert sum(not p.description for p in products) == 301
    assert sum(not p.title for p in products) == 1


@pytest.mark.parametrize(
    ("pricing", "prices", "tag"),
    [
        ("$12.50", (12.5,), "$12.5"),
        ("$9.99 - $1,014.98", (9.99, 1014.98), "$9.99 to $1014.98"),
        ("$5$6$7", (5.0, 6.0), "$5.0 to $6.0"),
        ("now only $3", (3.0,), "$3.0"),
        ("", (100.0,), "$100.0"),
        (None, (100.0,), "$100.0"),
    ],
)
def test_prices(pricing, prices, tag):
    assert product(pricing=pricing).price_range == prices
    assert product(pricing=pricing).price_tag == tag


@pytest.mark.parametrize("pricing", ["free", "12.50", "$", "$1.2.3", "$-", 12.5, ["$1"]])
def test_a_price_that_cannot_be_read_names_the_product(pricing):
    with pytest.raises(ValueError, match=r"product B000000001 \(number 0\).*pric"):
        product(pricing=pricing)
    if isinstance(pricing, str):
        with pytest.raises(ValueError, match="expected a text such as"):
            read_price(pricing)


def test_options():
    made = product(
        customization_options={
            "Color": [{"value": " Red/Blue ", "image": "x"}, {"value": "GREY"}, {"value": "grey"}],
            "Style": None,
            "Fit Type": [],
        }
    )
    assert made.options == {"color": ("red | blue", "grey", "grey"), "fit type": ()}
    assert product(customization_options=None).options == product(customization_options="").options == {}


def test_other_fields():
    made = product(query="  Men's SHIRTS ", small_description="one text", name="")
    assert (made.query, made.bullets, made.title) == ("men's shirts", ("one text",), "")
    assert made.attributes == ("DUMMY_ATTR",)
    assert product(small_description=[]).document() == "soft shirt a soft shirt "


def test_the_document_holds_title_description_first_bullet_and_options():
    options = {"Size": [{"value": "S"}, {"value": "L"}], "Hue": [{"value": "Red"}]}
    made = product(small_description=["First", "Second"], customization_options=options)
    assert made.document() == "soft shirt a soft shirt first size: s, l, and hue: red"


def test_rows_without_a_usable_asin_are_left_out():
    rows = [item("nan"), item("B0000000012"), item("B000000001"), item("B000000001", name="again"), item("B2")]
    assert [(p.asin, p.title) for p in make_products(rows, {})] == [("B000000001", "Soft Shirt"), ("B2", "Soft Shirt")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"asin": None}, "product 0 has no asin"),
        ({"name": None}, "B000000001.*its name is None"),
        ({"category": ""}, "B000000001.*its category is empty"),
        ({"category": 7}, "its category is 7"),
        ({"query": " "}, "its query is empty"),
        ({"full_description": ["x"]}, "its full_description is"),
        ({"small_description": 5}, "small_description is 5"),
        ({"small_description": None}, "small_description is None"),
        ({"customization_options": ["x"]}, "B000000001"),
        ({"customization_options": {"Size": [{"price": 1}]}}, "no 'value'"),
        ({"customization_options": {"Size": "large"}}, "B000000001"),
        ({"customization_options": {"Size": [{"value": 3}]}}, "its option 'Size' is 3"),
    ],
)
def test_a_product_that_cannot_be_read_is_named(row, said):
    with pytest.raises(ValueError, match=said):
        make_products([item() | row], {})


@pytest.mark.parametrize(
    "key", ["name", "category", "query", "product_category", "full_description", "small_description"]
)
def test_a_missing_key_is_named(key):
    row = item()
    del row[key]
    with pytest.raises(ValueError, match=f"the catalogue: product B000000001 .number 0. cannot be read: no '{key}'"):
        make_products([row], {})


def test_no_products_at_all():
    with pytest.raises(ValueError, match="holds no product"):
        make_products([item("nan")], {})
    with pytest.raises(ValueError, match="product 0 has no asin"):
        make_products(["text"], {})


@pytest.mark.parametrize(
    "own", [{"attributes": "soft"}, {"attributes": [1]}, {"attributes": [], "instruction_attributes": "soft"}]
)
def test_attributes_that_are_no_list_of_texts(own):
    with pytest.raises(ValueError, match=r"B000000001.*attributes"):
        make_products([item()], {"B000000001": own})


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


NOUNS = {"B000000001": ["shirt"]}


def test_folders_of_all_layouts(tmp_path):
    small = {"items_shuffle_1000": [item()], "items_ins_v2_1000": {}, "title_nouns": NOUNS}
    full = {"items_shuffle": [item(name="Full")], "items_ins_v2": {}, "title_nouns": NOUNS}
    for folder in (write(tmp_path / "a", **small), write(tmp_path / "b" / "data", **small)):
        assert load_products(str(folder).removesuffix("/data"))[0].title == "Soft Shirt"
    both = write(tmp_path / "both", **(small | full))
    assert load_products(str(both))[0].title == "Soft Shirt"
    assert load_products(str(both / "items_shuffle.json"))[0].title == "Full"
    assert load_products(str(write(tmp_path / "full", **full)))[0].title == "Full"


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(ValueError, match=r"no such folder or file.*fetch_webshop.py"):
        load_products(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"items_shuffle_1000.json or items_shuffle.json in it"):
        load_products(str(tmp_path))
    with pytest.raises(ValueError, match=r"items_shuffle.json is there, but not items_ins_v2.json"):
        load_products(str(write(tmp_path, items_shuffle=[item()])))
    with pytest.raises(ValueError, match=r"other\.json is no catalogue"):
        load_products(str(write(tmp_path, other=[]) / "other.json"))


@pytest.mark.parametrize("content", [b"", b'[{"asin": "B0', b"<html>404</html>", b"\xff\xfe\x00", b"{}"])
def test_a_half_downloaded_file_is_named(tmp_path, content):
    write(tmp_path, items_ins_v2={})
    (tmp_path / "items_shuffle.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"items_shuffle\.json.*(fetch it again|expected a list)"):
        load_products(str(tmp_path))


def test_without_a_list_of_nouns_words_stand_in_and_a_warning_says_so(tmp_path):
    write(tmp_path, items_shuffle=[item(name="The Soft Shirt for Men")], items_ins_v2={})
    with pytest.warns(UserWarning, match=r"1 titles have no list of nouns.*title_nouns.json"):
        (made,) = load_products(str(tmp_path))
    assert made.nouns == ("soft", "shirt", "men")


def test_the_real_files_give_the_same_under_the_names_of_the_full_set(shared_data, tmp_path):
    for name in ("items_shuffle", "items_ins_v2"):
        shutil.copy(shared_data / "webshop" / f"{name}_1000.json", tmp_path / f"{name}.json")
    shutil.copy(shared_data / "webshop" / "title_nouns.json", tmp_path)
    expected = [(p.asin, p.price_tag, p.options, p.nouns) for p in real(shared_data)[0].products]
    assert [(p.asin, p.price_tag, p.options, p.nouns) for p in load_products(str(tmp_path))] == expected


def test_a_large_catalogue_keeps_its_index(tmp_path, monkeypatch):
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(data, "_LARGE", 1)
    folder = write(tmp_path / "shop", items_shuffle=[item()], items_ins_v2={}, title_nouns=NOUNS)
    assert data.load_shop(str(folder)).index.search("shirt", TOP) == (0,)
    assert len(list((tmp_path / "cache" / "webshop").iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(data, "_LARGE", 1)
    folder = write(tmp_path / "shop", items_shuffle=[item()], items_ins_v2={}, title_nouns=NOUNS)
    with pytest.warns(UserWarning, match="TRCA_CACHE"):
        assert data.load_shop(str(folder)).index.search("shirt", TOP) == (0,)
