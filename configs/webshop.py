"""WebShop. The tiny policy shops in the generated catalogue; the other presets are the published setting.

python launch/train.py --config=configs/webshop.py
python launch/train.py --config=configs/webshop.py:qwen2.5-1.5b --config.agent.model=FOLDER --config.env.data=FOLDER
python launch/plan.py --config=configs/webshop.py:qwen2.5-7b --mesh=fsdp:4
python launch/warmstart.py --config=configs/webshop.py:warmstart --out=DIR     how its start policy was made
"""

from ml_collections import ConfigDict

from configs import common, qwen
from trca_jax.envs.webshop.tasks import CATEGORIES
from trca_jax.policy.config import PRESETS


def get_config(preset: str = "tiny"):
    c = common.get_config()
    c.env.name = "webshop"
    c.env.task_types = CATEGORIES
    # goals: synthetic or human. compat: webshop or verl-agent, whose test split leaks. split_by: clean or product.
    # option_match: original (some goals cannot score 1) or fixed. queries: free, or offered as commands.
    c.env.options = ConfigDict(
        {"goals": "synthetic", "compat": "webshop", "split_by": "clean", "option_match": "original", "queries": "free"}
    )
    c.env.max_steps = 15
    c.eval.split = "test"
    if preset.startswith("qwen"):
        return qwen.published(c, preset, prompt=4096, steps=15)
    c.env.options.queries = "offered"
    c.agent.max_new = 16
    c.agent.model = "webshop-tiny"
    c.credit.trca.evidence = 0.25  # as in alfworld.py
    c.credit.trca.invalidity = 0.25
    c.agent.buckets.chunk = (32, 64, 128, 192)
    c.agent.buckets.slots = (256, 384, 512, 768)  # longer episodes are cut off; few are, and all rows are as long
    c.agent.buckets.commands = (16, 64)
    if preset == "warmstart":
        c.warmstart.steps = 940
        c.warmstart.phases = (
            (0.383, 0.95, 6400, "all", 32, 3e-3, 0.4),
            (0.043, 0.5, 1024, "all", 32, 1.5e-3, 0.4),
            (0.234, 1.0, 6400, "won", 32, 2e-3, 0.05),
            (0.34, 1.0, 9600, "won", 32, 2e-3, 0.05),
        )
    elif preset != "tiny":
        raise ValueError(f"preset {preset!r} is unknown, expected tiny, warmstart or {', '.join(PRESETS)}")
    return c
