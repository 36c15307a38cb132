"""What a category of the rubric may pay: equal budgets, less for the search (as ALFWorld's tiny size has it), one of
them nothing, or a budget for each item; and a terminal reward of 10.

python launch/sweep.py --config=configs/ablations/budgets.py
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    budgets = ("evidence", "invalidity", "execution")
    equal = {f"credit.trca.{name}": 1.0 for name in budgets}
    return grid(
        base,
        "budgets",
        {
            "equal": equal,
            "search 0.25": equal | {"credit.trca.evidence": 0.25, "credit.trca.invalidity": 0.25},
            **{f"no {name}": equal | {f"credit.trca.{name}": 0.0} for name in budgets},
            "per item": equal | {"credit.trca.budget_mode": "item"},
            "terminal 10": equal | {"credit.trca.terminal_scale": 10.0},
        },
    )
