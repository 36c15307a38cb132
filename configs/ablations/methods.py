"""The credit methods at equal rollouts, up to the published budgets of 1,920, 3,840 and 6,400 (methods 10.7).

python launch/sweep.py --config=configs/ablations/methods.py
python launch/compare.py runs/methods/*/
"""

from configs.ablations.grid import grid

METHODS = ("trca", "grpo", "rloo", "ppo", "gigpo", "graphgpo", "hcapo")


def get_config(base: str = "alfworld"):
    c = grid(base, "methods", {"": {}}, METHODS)
    c.iterations = 50
    return c
