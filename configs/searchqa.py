"""SearchQA. The tiny policy answers questions about a generated world; the other presets are the published setting.

A preset is a size, a baseline at the tiny size, or both as BASELINE,SIZE. Baselines: search_r1, r1_instruct,
zerosearch, stepsearch, igpo, trace, gigpo, hcapo (`configs/search_baselines.py`).

python launch/train.py --config=configs/searchqa.py
python launch/train.py --config=configs/searchqa.py:zerosearch
python launch/train.py --config=configs/searchqa.py:search_r1 --config.method=grpo      PPO is its default
python launch/train.py --config=configs/searchqa.py:qwen2.5-3b --config.agent.model=FOLDER --config.env.data=FOLDER
python launch/evaluate.py --config=configs/searchqa.py --config.env.data=FOLDER --config.eval.split=eval \\
    --config.eval.temperature=0     all seven sets of a folder, greedily
python launch/train.py --config=configs/searchqa.py:search_r1,qwen2.5-3b --config.agent.model=FOLDER ...
python launch/plan.py --config=configs/searchqa.py:qwen2.5-7b --mesh=fsdp:4
python launch/warmstart.py --config=configs/searchqa.py:warmstart --out=DIR     how its start policy was made
"""

from ml_collections import ConfigDict

from configs import common, qwen
from configs.search_baselines import BASELINES, choose
from trca_jax.policy.config import PRESETS


def get_config(preset: str = "tiny"):
    name, _, size = preset.partition(",")
    if size and name not in BASELINES:
        raise ValueError(f"baseline {name!r} is unknown, expected one of {', '.join(BASELINES)}")
    if name in BASELINES:
        return choose(_sized(size or "tiny"), name, published=size.startswith("qwen"))
    return _sized(preset)


def _sized(size: str) -> ConfigDict:
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
    if size.startswith("qwen"):
        c = qwen.published(c, size, prompt=4096, steps=4)
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
    c.agent.buckets.chunk = (32, 64, 320)  # the last ones are for real passages
    c.agent.buckets.slots = (128, 256, 1024)
    c.agent.buckets.commands = (16, 48)
    c.signals.lead_in = "<answer>"  # the prompt ends where an action begins
    if size == "warmstart":
        c.warmstart.steps = 1000
        c.warmstart.phases = (
            (0.45, 0.6, 6400, "all", 64, 3e-3, 0.2),
            (0.5, 1.0, 6400, "won", 64, 2e-3, 0.05),
            (0.05, 0.3, 2048, "all", 32, 1e-3, 0.05),
        )
    elif size != "tiny":
        raise ValueError(
            f"preset {size!r} is unknown, expected tiny, warmstart or {', '.join(PRESETS)}; or one of the baselines "
            f"{', '.join(BASELINES)}, with such a size behind a comma"
        )
    return c
