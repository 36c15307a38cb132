"""SearchQA. The tiny policy answers questions about a generated world; the other presets are the published setting.

python launch/train.py --config=configs/searchqa.py
python launch/train.py --config=configs/searchqa.py:qwen2.5-3b --config.agent.model=FOLDER --config.env.data=FOLDER
python launch/evaluate.py --config=configs/searchqa.py --config.env.data=FOLDER --config.eval.split=eval \\
    --config.eval.temperature=0     all seven sets of a folder, greedily
python launch/plan.py --config=configs/searchqa.py:qwen2.5-7b --mesh=fsdp:4
python launch/warmstart.py --config=configs/searchqa.py:warmstart --out=DIR     how its start policy was made
"""

from ml_collections import ConfigDict

from configs import common, qwen
from trca_jax.policy.config import PRESETS


def get_config(preset: str = "tiny"):
    c = common.get_config()
    c.env.name = "searchqa"
    # Kinds of generated questions, or sets of a folder; empty: all, and of a folder NQ and HotpotQA for training.
    c.env.task_types = ()
    # retriever: bm25 over the folder's corpus, addresses of servers joined by commas, or empty for no search engine.
    # protocol: verl-agent, or search-r1 with agent.prompt=search-r1. limit: actions; the last one's search is not
    # executed (search-r1 has 5). reward: em, f1 or stepsearch. queries: free, or offered as commands.
    c.env.options = ConfigDict(
        {"retriever": "bm25", "protocol": "verl-agent", "limit": 4, "k": 3, "reward": "em", "queries": "free"}
    )
    c.env.max_steps = 4
    c.env.deadline_s = 300.0  # a server is tried four times
    c.eval.split = "test"
    if preset.startswith("qwen"):
        c = qwen.published(c, preset, prompt=4096, steps=4)
        c.agent.prompt = "search"
        c.iterations = 200
        c.eval.split = "eval"
        c.eval.temperature = 0.0
        return c
    c.env.options.queries = "offered"
    c.agent.max_new = 16
    c.agent.model = "searchqa-tiny"
    c.credit.trca.evidence = 0.25  # as in alfworld.py
    c.credit.trca.invalidity = 0.25
    c.agent.buckets.chunk = (32, 64)
    c.agent.buckets.slots = (128, 256)
    c.agent.buckets.commands = (16, 48)
    c.signals.lead_in = "<answer>"  # the prompt ends where an action begins
    if preset == "warmstart":
        c.warmstart.steps = 1000
        c.warmstart.phases = (
            (0.45, 0.6, 6400, "all", 64, 3e-3, 0.2),
            (0.5, 1.0, 6400, "won", 64, 2e-3, 0.05),
            (0.05, 0.3, 2048, "all", 32, 1e-3, 0.05),
        )
    elif preset != "tiny":
        raise ValueError(f"preset {preset!r} is unknown, expected tiny, warmstart or {', '.join(PRESETS)}")
    return c
