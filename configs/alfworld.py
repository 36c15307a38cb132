"""ALFWorld with the tiny policy: learns on two CPU cores within minutes.

python launch/train.py --config=configs/alfworld.py
python launch/warmstart.py --config=configs/alfworld.py:warmstart --out=DIR     how its start policy was made
"""

from configs import common
from trca_jax.envs.alfworld.games import TASK_TYPES


def get_config(preset: str = "tiny"):
    c = common.get_config()
    c.env.name = "alfworld"
    # Left out: "look", which the start policy wins most often, and "two", which it was never seen to win.
    c.env.task_types = (
        "pick_and_place_simple",
        "pick_clean_then_place_in_recep",
        "pick_heat_then_place_in_recep",
        "pick_cool_then_place_in_recep",
    )
    c.agent.model = "alfworld-tiny"
    # Chosen by one run, both at once (README, Deviations).
    c.credit.trca.step_std = "batch"
    c.credit.trca.terminal_scale = 5.0
    if preset == "warmstart":
        c.env.task_types = TASK_TYPES
        c.env.games = 1200
        c.warmstart.steps = 1560
    elif preset != "tiny":
        raise ValueError(f"preset {preset!r} is unknown, expected tiny or warmstart")
    return c
