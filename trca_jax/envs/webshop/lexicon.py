"""Words that the generated catalogue is made of: lines of products in WebShop's five categories."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Products of one kind, which compete with each other.

    query: WebShop's name of the kind. path: category steps. nouns: of titles, the head last. attributes: phrases that a
    product has some of and an instruction asks for. options: names to the values on offer; a product offers some.
    styles: words that tell products apart. prices: lowest and highest dollars.
    """

    category: str
    query: str
    path: str
    heads: tuple[str, ...]
    attributes: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    styles: tuple[str, ...]
    prices: tuple[int, int]


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


_CLOTHES_COLORS = _split("black|white|navy|charcoal|burgundy|olive|royal blue|heather grey|khaki|red")
_CLOTHES_SIZES = _split("small|medium|large|x-large|xx-large|3x-large")
_SHOE_SIZES = _split("6|7|8|9|10|11|12")
_CLOTHES = _split(
    "machine wash|long sleeve|short sleeve|slim fit|regular fit|cotton heather|cotton spandex|button closure|wash cold|"
    "moisture wicking|quick drying|classic fit"
)
_HOME_COLORS = _split("grey|beige|blue|green|ivory|teal|brown|multicolor")
_SKIN = _split("cruelty free|paraben free|sulfate free|fragrance free|dry skin|sensitive skin|long lasting|easy use")
_FOOD = _split("gluten free|non gmo|sugar free|dairy free|low carb|individually wrapped|artificial colors|soy free")
_SCREEN = _split("easy install|heavy duty|plug play|high definition|long lasting|high performance|stainless steel")
_ROOM = _split("living room|dining room|machine washable|easy clean|super soft|non slip|double sided|spot clean")

LINES = (
    Line("fashion", "men's dress shirts", "Clothing, Shoes & Jewelry › Men › Clothing › Shirts › Dress Shirts",
         _split("dress shirt|button down shirt"), _CLOTHES, {"color": _CLOTHES_COLORS, "size": _CLOTHES_SIZES},
         _split("oxford|poplin|twill|stretch|checked|striped"), (14, 79)),
    Line("fashion", "men's t-shirts", "Clothing, Shoes & Jewelry › Men › Clothing › Shirts › T-Shirts",
         _split("tee shirt|crew neck t-shirt"), _CLOTHES,
         {"fit type": ("men", "women", "youth"), "color": _CLOTHES_COLORS, "size": _CLOTHES_SIZES},
         _split("graphic|vintage|plain|pocket|retro"), (9, 35)),
    Line("fashion", "women's dresses", "Clothing, Shoes & Jewelry › Women › Clothing › Dresses › Casual",
         _split("midi dress|maxi dress|dress"), (*_CLOTHES, "elastic waist", "high waist"),
         {"color": _CLOTHES_COLORS, "size": _CLOTHES_SIZES}, _split("floral|wrap|pleated|linen|boho"), (16, 89)),
    Line("fashion", "women's pumps", "Clothing, Shoes & Jewelry › Women › Shoes › Pumps",
         _split("heel pump|pumps"), _split("rubber sole|closed toe|ankle strap|high heel|arch support|faux leather"),
         {"color": _CLOTHES_COLORS, "size": _SHOE_SIZES}, _split("pointed|block|platform|suede|patent"), (22, 120)),
    Line("fashion", "men's loafers & slip-ons", "Clothing, Shoes & Jewelry › Men › Shoes › Loafers & Slip-Ons",
         _split("loafer|driving moccasin"), _split("rubber sole|non slip|arch support|memory foam|slip resistant"),
         {"color": _CLOTHES_COLORS, "size": _SHOE_SIZES}, _split("penny|tassel|canvas|suede"), (25, 140)),
    Line("beauty", "shampoos", "Beauty & Personal Care › Hair Care › Shampoo & Conditioner › Shampoos",
         _split("shampoo|solid shampoo"), (*_SKIN, "damaged hair", "hair growth", "argan oil"),
         {"scent": _split("lavender|coconut|fresh mint|citrus|unscented"),
          "size": _split("8 fl oz|12 fl oz|16 fl oz (pack of 2)")},
         _split("repair|volume|daily|herbal|clarifying"), (6, 45)),
    Line("beauty", "face creams", "Beauty & Personal Care › Skin Care › Face › Creams & Moisturizers",
         _split("face cream|moisturizer cream"), (*_SKIN, "anti aging", "hyaluronic acid"),
         {"size": _split("1.7 ounce|3.4 ounce|50 ml")}, _split("night|day|firming|brightening|barrier"), (8, 90)),
    Line("beauty", "lipsticks", "Beauty & Personal Care › Makeup › Lips › Lipsticks",
         _split("lipstick|liquid lipstick"), (*_SKIN, "high quality"),
         {"color": _split("rose|plum|coral|nude|cherry red|mauve|café au lait")},
         _split("matte|satin|velvet|liquid"), (5, 32)),
    Line("beauty", "hair brushes", "Beauty & Personal Care › Hair Care › Styling Tools › Brushes",
         _split("hair brush|hair comb"), _split("wet dry|long handle|easy clean|natural hair|damaged hair"),
         {"color": _split("pink|black|teal|purple")}, _split("round|paddle|vent|boar"), (4, 28)),
    Line("electronics", "headphones", "Electronics › Headphones, Earbuds & Accessories › Headphones",
         _split("headphones|over ear headphones"), (*_SCREEN, "noise cancelling", "hands free", "wireless bluetooth"),
         {"color": _split("black|white|midnight blue|silver|rose gold")}, _split("studio|sport|travel|gaming"),
         (15, 260)),
    Line("electronics", "phone cases", "Cell Phones & Accessories › Cases, Holsters & Sleeves › Basic Cases",
         _split("phone case|wallet case"), _split("wireless charging|glass screen|case cover|heavy duty|hands free"),
         {"color": _split("clear|black|marble|sunflower|b02#purple"), "size": _split("mini|pro|pro max")},
         _split("shockproof|slim|leather|silicone"), (6, 40)),
    Line("electronics", "tv mounts", "Electronics › Television & Video › Accessories › TV Mounts, Stands & Turntables",
         _split("tv mount|tv wall bracket"), _SCREEN, {"size": ('26" to 55"', '32" to 70"', '42" to 90"')},
         _split("full motion|tilting|fixed|corner"), (18, 150)),
    Line("electronics", "projectors", "Electronics › Television & Video › Projectors",
         _split("video projector|home projector"), (*_SCREEN, "dual band", "quad core"),
         {"style": _split("standard|with screen|portable")}, _split("short throw|laser|pocket"), (60, 1400)),
    Line("garden", "decorative pillows", "Home & Kitchen › Bedding › Decorative Pillows, Inserts & Covers",
         _split("throw pillow cover|pillow cushion cover"), _ROOM,
         {"color": _HOME_COLORS, "size": ('16" x 16"', '18" x 18"', '20" x 20"', '28" x 28"')},
         _split("geometric|velvet|embroidered|striped"), (8, 40)),
    Line("garden", "area rugs", "Home & Kitchen › Area Rugs, Runners & Pads › Area Rugs",
         _split("area rug|runner rug"), _ROOM,
         {"item shape": _split("rectangular|round|square"), "color": _HOME_COLORS,
          "size": _split("2 ft x 3 ft|4 ft x 6 ft|5 ft x 8 ft")},
         _split("moroccan|shag|persian|braided"), (25, 320)),
    Line("garden", "table lamps", "Tools & Home Improvement › Lighting & Ceiling Fans › Lamps & Shades › Table Lamps",
         _split("table lamp|desk lamp"), _split("easy assemble|solid wood|glass shade|living room|brushed nickel"),
         {"color": _HOME_COLORS}, _split("ceramic|industrial|touch|bedside"), (20, 180)),
    Line("garden", "sofas & couches", "Home & Kitchen › Furniture › Living Room Furniture › Sofas & Couches",
         _split("sectional sofa|loveseat couch"),
         _split("mid century|solid wood|easy assemble|high density|living room"),
         {"color": _HOME_COLORS, "size": _split("loveseat|3 seat|l shape")},
         _split("tufted|convertible|modular|sleeper"), (320, 1900)),
    Line("grocery", "coffee", "Grocery & Gourmet Food › Beverages › Coffee › Ground Coffee",
         _split("ground coffee|coffee beans"), (*_FOOD, "fair trade", "usda organic"),
         {"flavor name": _split("hazelnut|vanilla|dark roast|french roast|decaf"),
          "size": _split("12 ounce (pack of 1)|12 ounce (pack of 3)|2.2 pound")},
         _split("arabica|espresso|breakfast|swiss water"), (7, 60)),
    Line("grocery", "protein bars", "Grocery & Gourmet Food › Snack Foods › Bars › Protein Bars",
         _split("protein bar|snack bar"), (*_FOOD, "high protein", "keto friendly"),
         {"flavor name": _split("peanut butter|dark chocolate|coconut almond|lemon"),
          "size": _split("6 count|12 count|24 count (pack of 2)")}, _split("crispy|chewy|plant|layered"), (8, 55)),
    Line("grocery", "snack nuts", "Grocery & Gourmet Food › Snack Foods › Nuts & Seeds › Almonds",
         _split("almonds|mixed nuts"), (*_FOOD, "protein serving", "resealable bag"),
         {"flavor name": _split("sea salt|smoked|honey roasted|unsalted|wasabi")},
         _split("roasted|raw|sprouted"), (6, 48)),
    Line("grocery", "tea beverages", "Grocery & Gourmet Food › Beverages › Tea › Herbal",
         _split("herbal tea|green tea"), (*_FOOD, "caffeine free", "usda organic"),
         {"flavor name": _split("peppermint|chamomile|ginger lemon|jasmine|crème brûlée")},
         _split("loose leaf|sachet|iced|ceremonial"), (5, 38)),
)  # fmt: skip

BRANDS = _split(
    "Harrow & Finch|Alderby|Novacove|Brightmoor|Kestrel Lane|Oakenhall|Tiderow|Lumenna|Pellworth|Suncoppice|"
    "Marlowe Bay|Fernlight|Quillstone|Vantero|Ashgrove|Willowmere|Copperfen|Dunmarra|Eastvale|Greyfell"
)
# Words that a tagger calls nouns; all other words of a title are not.
NOUNS = frozenset(
    (
        "dress shirt tee t neck pocket heel pump pumps loafer moccasin shampoo bar cream face moisturizer "
        "lipstick lip hair brush comb ear headphones phone case wallet tv mount wall bracket video home projector "
        "throw pillow cover cushion area rug runner table desk lamp sofa loveseat couch coffee beans protein "
        "snack almonds nuts tea oxford poplin twill linen suede canvas velvet leather silicone marble oil acid "
        "cotton spandex heather sleeve fit closure sole toe strap heel support foam skin growth aging handle "
        "install duty definition performance steel screen charging bluetooth band core room assemble wood shade "
        "nickel density century gmo carb colors trade serving bag men women pack set men's women's wash"
    ).split()
) | frozenset(word.lower() for brand in BRANDS for word in brand.split() if word.isalpha())  # fmt: skip
