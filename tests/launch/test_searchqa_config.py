"""SearchQA's presets."""

import pytest

from configs import searchqa
from configs.search_baselines import BASELINES
from launch.command import check_config
from trca_jax.agents.prompts import PROMPTS
from trca_jax.envs.registry import make_benchmark

SIZES = "expected tiny, warmstart or qwen2.5-0.5b"
# What each baseline is at any size, and the published values: fields of the config.
DEFINED = {
    "search_r1": {"method": "ppo", "credit.ppo.span": "trajectory", "credit.grpo.stat_unit": "trajectory",
                  "env.options.reward": "em", "env.options.retriever": "bm25", "env.options.structure_score": 0.0},
    "r1_instruct": {"method": "ppo", "env.options.reward": "em", "env.options.retriever": "", "env.max_steps": 1},
    "zerosearch": {"method": "grpo", "credit.grpo.stat_unit": "trajectory", "env.options.reward": "f1",
                   "env.options.noise_start": 0.0, "env.options.noise_end": 0.5},
    "stepsearch": {"method": "stepsearch", "env.options.reward": "stepsearch", "credit.stepsearch.scale": 0.6},
    "igpo": {"method": "igpo", "env.options.reward": "f1", "credit.igpo.gamma": 1.0,
             "credit.igpo.normalise": "separate"},
    "trace": {"method": "trace", "env.options.reward": "em", "credit.trace.horizon": 3,
              "credit.trace.turn_weight": 0.2},
    "gigpo": {"method": "gigpo", "env.options.reward": "em", "credit.gigpo.similarity": 0.9,
              "credit.gigpo.gamma": 0.95},
    "hcapo": {"method": "hcapo", "env.options.reward": "em", "credit.hcapo.omega": 1.0,
              "credit.hcapo.temperature": 5.0},
}  # fmt: skip
_SEARCH_R1 = {"iterations": 1005, "tasks": 512, "group_size": 5, "ppo.lr": 1e-6, "ppo.critic_lr": 1e-5, "ppo.kl": 0.001,
              "ppo.entropy": 0.001, "ppo.minibatches": 10, "ppo.warmup": 2860, "env.options.k": 3,
              "env.options.protocol": "search-r1", "agent.max_new": 500}  # fmt: skip
_VERL_AGENT = {"iterations": 200, "tasks": 256, "group_size": 5, "ppo.lr": 1e-6, "ppo.kl": 0.001, "ppo.entropy": 0.0,
               "ppo.warmup": 200, "env.max_steps": 4, "env.options.protocol": "verl-agent", "agent.prompt": "search",
               "agent.max_new": 512}  # fmt: skip
PUBLISHED = {
    "search_r1": {**_SEARCH_R1, "agent.prompt": "search-r1", "env.max_steps": 5},
    "r1_instruct": {**_SEARCH_R1, "agent.prompt": "reason", "env.max_steps": 1},
    "zerosearch": {"iterations": 203, "tasks": 64, "group_size": 5, "ppo.lr": 1e-6, "ppo.kl": 0.001, "ppo.warmup": 386,
                   "env.options.noise_steps": 203, "env.options.k": 5, "env.max_steps": 6},
    "stepsearch": {"iterations": 500, "tasks": 256, "group_size": 1, "ppo.lr": 7e-7, "ppo.critic_lr": 7e-6,
                   "ppo.kl": 0.001, "ppo.minibatches": 4, "env.options.k": 3, "env.max_steps": 6},
    "igpo": {"tasks": 32, "group_size": 16, "ppo.lr": 1e-6, "ppo.kl": 0.001, "env.max_steps": 10,
             "ppo.aggregation": "seq-mean-token-sum"},
    "trace": {"iterations": 200, "group_size": 8, "ppo.lr": 1e-6, "ppo.kl": 0.001, "env.max_steps": 10},
    "gigpo": {**_VERL_AGENT, "credit.gigpo.invalid_penalty": 0.01},
    "hcapo": _VERL_AGENT,
}  # fmt: skip


def fields(c, names):
    flat = {}
    for name in names:
        flat[name] = c
        for part in name.split("."):
            flat[name] = flat[name][part]
    return flat


def test_presets_are_the_published_setting():
    c = searchqa.get_config("qwen2.5-7b")
    assert (c.env.max_steps, max(c.agent.buckets.chunk), c.agent.max_new, c.iterations) == (4, 4096, 512, 200)
    assert (c.agent.prompt, c.eval.split, c.eval.temperature, c.env.options.queries) == ("search", "eval", 0.0, "free")


@pytest.mark.parametrize(
    ("preset", "said"),
    [
        ("huge", rf"preset 'huge' is unknown, {SIZES}.*or one of the baselines search_r1, r1_instruct, zerosearch, "),
        ("search_r1,huge", rf"preset 'huge' is unknown, {SIZES}"),
        ("search_r2,tiny", "baseline 'search_r2' is unknown, expected one of search_r1, .*gigpo, hcapo$"),
        ("qwen2.5-3b,search_r1", "baseline 'qwen2.5-3b' is unknown, expected one of search_r1"),
    ],
)
def test_an_unknown_preset_is_told_what_is_known(preset, said):
    with pytest.raises(ValueError, match=said):
        searchqa.get_config(preset)


@pytest.mark.parametrize(
    "preset", ["tiny", "warmstart", "qwen2.5-3b", *BASELINES, *(f"{b},qwen2.5-3b" for b in BASELINES)]
)
def test_a_preset_makes_its_benchmark(preset):
    c = searchqa.get_config(preset)
    check_config(c)
    benchmark = make_benchmark(c.env.name, source=c.env.data, task_types=tuple(c.env.task_types), **c.env.options)
    assert benchmark.limit == c.env.max_steps
    assert benchmark.make_env().reset(benchmark.tasks(c.eval.split, 1).tasks[0]).text
    text = PROMPTS[c.agent.prompt](benchmark).first("Who?", "Who?", ())
    assert text.count("ho?") <= 1
    assert ("search" in text) == (c.agent.prompt in ("search", "search-r1"))


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_is_what_it_is_called_at_both_sizes(name):
    tiny, plain = searchqa.get_config(name), searchqa.get_config()
    assert tiny.baseline == name and "baseline" not in plain
    assert fields(tiny, DEFINED[name]) == DEFINED[name]
    kept = (
        "iterations", "tasks", "group_size", "ppo", "agent", "eval", "signals", "env.options.k", "env.options.queries",
        "env.options.protocol",
    )  # fmt: skip
    assert fields(tiny, kept) == fields(plain, kept)  # of the tiny size
    large = searchqa.get_config(f"{name},qwen2.5-3b")
    assert (large.baseline, large.agent.model, large.eval.temperature) == (name, "qwen2.5-3b", 0.0)
    expected = DEFINED[name] | PUBLISHED[name]
    assert fields(large, expected) == expected


def test_search_r1_is_trained_by_grpo_where_asked():
    for preset in ("search_r1", "search_r1,qwen2.5-3b"):
        c = searchqa.get_config(preset)
        c.method = "grpo"
        check_config(c)
    assert (c.tasks, c.group_size, c.ppo.kl, c.ppo.kl_kind) == (512, 5, 0.001, "k3")
