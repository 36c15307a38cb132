"""Words that the generated world is made of. Every name is one word in lower case without punctuation."""

from __future__ import annotations

from itertools import product


def _compose(heads: str, tails: str) -> tuple[str, ...]:
    return tuple(f"{head}{tail}".capitalize() for head, tail in product(heads.split(), tails.split()))


FIRST_NAMES = tuple(
    (
        "Ada Bram Cora Dario Elsa Fenn Greta Hugo Ines Jonas Kaia Leon Mira Nils Orla Pavel Quinn Rosa Sven Tessa "
        "Ulric Vera Wim Xenia Yara Zeno Alma Boris Clara Dora Edgar Flora Gideon Hanna Ivo Juno Karl Lena Magda "
        "Otto"
    ).split()
)
LAST_NAMES = _compose("har bel cor dun fal gar hol lin mar nor pel sil", "mont wick stad berg kin low rane vik")
CITIES = _compose("del tar ash bro cal dor el fen gil hav", "bury ford haven mere port stow ton worth")
COUNTRIES = tuple(
    "Norvania Estoria Galdia Brevonia Caldora Mirandia Sorrelia Velmark Ostrava Lunaria Parthenia Zemlin".split()
)
RIVERS = tuple("Tarn Wend Oster Irwell Lune Morra Severa Dovey Arrow Calder Nidd Ribble".split())
ADJECTIVES = tuple(
    (
        "Silent Golden Broken Crimson Distant Hollow Velvet Winter Burning Frozen Hidden Painted Restless Silver "
        "Wooden Yellow Bitter Gentle Lonely Sacred Stolen Sunken Vanished Wandering Whispering Amber Copper Emerald "
        "Marble Paper"
    ).split()
)
NOUNS = tuple(
    (
        "Harbor Garden Mirror Lantern Orchard Bridge Castle Compass Falcon Feather Island Journey Kingdom Letter "
        "Meadow Mountain Needle Ocean Palace Raven Shadow Staircase Storm Summer Thread Tower Valley Voyage Window "
        "Clock Crown Desert Echo Forest Glacier Horizon Ladder Pearl Rainbow Temple"
    ).split()
)
HOUSES = _compose("alder birch cedar elder hazel laurel maple rowan", "crest dale field gate grove hill lane moor")
