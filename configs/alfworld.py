"""ALFWorld. The tiny policy learns on two CPU cores within minutes; the other presets are the published setting.

python launch/train.py --config=configs/alfworld.py
python launch/train.py --config=configs/alfworld.py:qwen2.5-1.5b --config.agent.model=FOLDER
python launch/plan.py --config=configs/alfworld.py:qwen2.5-7b --mesh=fsdp:4
python launch/warmstart.py --config=configs/alfworld.py:warmstart --out=DIR     how its start policy was made
"""

from configs import common, qwen
from trca_jax.envs.alfworld.games import TASK_TYPES
from trca_jax.policy.config import PRESETS


def get_config(preset: str = "tiny"):
    c = common.get_config()
    c.env.name = "alfworld"
    if preset.startswith("qwen"):
        c.env.task_types = TASK_TYPES
        return qwen.published(c, preset, prompt=2048, steps=25)
    # Left out: "look", which the start policy wins most often, and "two", which it was never seen to win.
    c.env.task_types = (
        "pick_and_place_simple",
        "pick_clean_then_place_in_recep",
        "pick_heat_then_place_in_recep",
        "pick_cool_then_place_in_recep",
    )
    c.agent.model = "alfworld-tiny"
    # With equal budgets most of the advantage goes to where to look next, since most steps search, and a policy this
    # small then learns too late to take what it found (README, Deviations).
    c.credit.trca.evidence = 0.25
    c.credit.trca.invalidity = 0.25
    if preset == "warmstart":
        c.env.task_types = TASK_TYPES
        c.env.games = 1200
        c.warmstart.steps = 1560
    elif preset != "tiny":
        raise ValueError(f"preset {preset!r} is unknown, expected tiny, warmstart or {', '.join(PRESETS)}")
    return c
