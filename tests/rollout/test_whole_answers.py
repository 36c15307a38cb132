"""Form is judged by the agent's own words, on the whole way from an answer to its reward."""

import pytest

from trca_jax.agents.chat import Reply
from trca_jax.agents.prompts import PROMPTS
from trca_jax.envs.pool import EnvPool
from trca_jax.envs.searchqa import Searchqa
from trca_jax.rollout.converse import Conversations


class Script:
    """A chat model that says one line after another."""

    def __init__(self, *lines):
        self.lines = iter(lines)

    def complete_all(self, talks, samples, **sampling):
        return [Reply(next(self.lines), 0, 0) for _ in talks]


@pytest.mark.parametrize("prompt", ["search", "search-r1"])
@pytest.mark.parametrize(("thought", "earned"), [("<think>so</think>", 1.0), ("", 0.8)])
def test_form_is_rewarded_through_the_whole_way(prompt, thought, earned):
    benchmark = Searchqa(structure_score=0.2, protocol="verl-agent" if prompt == "search" else "search-r1")
    (asked,) = benchmark.tasks("test", 1).tasks
    script = Script(f"{thought}<search>x</search>", f"<think>so</think>\n<answer>{benchmark.gold(asked)}</answer>")
    with EnvPool(benchmark.make_env, slots=1, workers=0) as pool:
        play = Conversations(script, PROMPTS[prompt](benchmark), pool, max_steps=4, max_new=64)
        (episode,) = play(None, [asked], [0])
    assert episode.steps[0].action == "<search>x</search>"
    assert (episode.score, episode.won) == (earned, True)
