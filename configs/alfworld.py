"""ALFWorld with the tiny policy: learns on two CPU cores within minutes.

python launch/train.py --config=configs/alfworld.py
"""

from configs import common


def get_config(preset: str = "tiny"):
    c = common.get_config()
    c.env.name = "alfworld"
    c.env.task_types = (
        "pick_and_place_simple",
        "pick_clean_then_place_in_recep",
    )
    c.agent.model = "alfworld-tiny"
    if preset != "tiny":
        raise ValueError(f"preset {preset!r} is unknown, expected tiny")
    return c
