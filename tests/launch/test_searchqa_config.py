"""SearchQA's presets."""

import pytest

from configs import searchqa
from trca_jax.agents.prompts import PROMPTS
from trca_jax.envs.registry import make_benchmark


def test_presets_are_the_published_setting():
    c = searchqa.get_config("qwen2.5-7b")
    assert (c.env.max_steps, max(c.agent.buckets.chunk), c.agent.max_new, c.iterations) == (4, 4096, 512, 200)
    assert (c.agent.prompt, c.eval.split, c.eval.temperature, c.env.options.queries) == ("search", "eval", 0.0, "free")
    with pytest.raises(ValueError, match=r"preset 'huge' is unknown, expected tiny, warmstart or qwen2\.5-0\.5b"):
        searchqa.get_config("huge")


@pytest.mark.parametrize("preset", ["tiny", "warmstart", "qwen2.5-3b"])
def test_a_preset_makes_its_benchmark(preset):
    c = searchqa.get_config(preset)
    benchmark = make_benchmark(c.env.name, source=c.env.data, task_types=tuple(c.env.task_types), **c.env.options)
    assert benchmark.limit == c.env.max_steps
    assert benchmark.make_env().reset(benchmark.tasks(c.eval.split, 1).tasks[0]).text
    assert PROMPTS[c.agent.prompt](benchmark).first("Who?", "Who?", ()).count("ho?") <= 1
