"""How much counts as invalid: what cannot be parsed or is refused (narrow), also what is idle, repeated or undoes
progress (wide, as in rubric.toml), or nothing. ALFWorld only, by the names of its operators.

python launch/sweep.py --config=configs/ablations/invalidity.py
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    wide = ("idle", "repeated", "regressed")
    return grid(
        base,
        "invalidity",
        {
            "wide": {},
            "narrow": {"env.rubric.without": wide},
            "none": {"env.rubric.without": ("unparsed", "refused", *wide)},
        },
    )
