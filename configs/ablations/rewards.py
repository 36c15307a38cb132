"""The rubric reward without one of its parts: without r_B λ is 0, without r_F it is 1, and without both the steps of a
context are compared by their discounted outcomes alone.

python launch/sweep.py --config=configs/ablations/rewards.py
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    budgets = ("evidence", "invalidity", "execution")
    return grid(
        base,
        "rewards",
        {
            "both": {},
            "without r_F": {"credit.trca.lam": 1.0},
            "without r_B": {"credit.trca.lam": 0.0},
            "neither": {f"credit.trca.{name}": 0.0 for name in budgets},
        },
    )
