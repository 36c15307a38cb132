"""TRCA with one of its two comparisons alone: whole rollouts of a task (A_E), or steps of a decision context (A_S).

python launch/sweep.py --config=configs/ablations/advantage.py
"""

from configs.ablations.grid import grid


def get_config(base: str = "alfworld"):
    return grid(
        base,
        "advantage",
        {
            "A_E + A_S": {},
            "A_S only": {"credit.trca.episode_weight": 0.0},
            "A_E only": {"credit.trca.step_weight": 0.0},
        },
    )
