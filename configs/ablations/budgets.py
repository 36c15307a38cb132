"""What a category of the rubric may pay: as the config has it, equal, without one of them, or a budget for each item.

python launch/sweep.py --config=configs/ablations/budgets.py
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    budgets = ("evidence", "invalidity", "execution")
    return grid(
        base,
        "budgets",
        {
            "own": {},
            "equal": {f"credit.trca.{name}": 1.0 for name in budgets},
            **{f"no {name}": {f"credit.trca.{name}": 0.0} for name in budgets},
            "per item": {"credit.trca.budget_mode": "item"},
            "terminal 10": {"credit.trca.terminal_scale": 10.0},
        },
    )
