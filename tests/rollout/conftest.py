"""One policy and one way to play the fake world for all tests of this room; its shapes are compiled once."""

import jax
import pytest
from fake_world import CONFIG, TOKENIZER, ShortPrompt, World, policy

from trca_jax.agents.prompts import WordPrompt
from trca_jax.envs.alfworld.brief import brief
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.sampler import Buckets
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.collect import Collector

BUCKETS = Buckets(chunk=(32,), slots=(96,), commands=(4,))
MAX_STEPS = 4


@pytest.fixture(scope="session")
def params():
    return policy()


@pytest.fixture(scope="session")
def play(params):
    """play(tasks, groups, ...) -> episodes; every call has its own pool and collector. call: how it is called."""

    def run(
        tasks, groups=None, *, seed=0, prompt=None, decode="free", slots=4, halves=1, max_steps=MAX_STEPS, pool=None,
        call=None, **more,
    ):  # fmt: skip
        codec = Codec(TOKENIZER, prompt or WordPrompt(brief), 4)
        with pool or EnvPool(World().make_env, slots=slots, workers=0) as pool:
            collector = Collector(
                CONFIG, codec, pool, max_steps=max_steps, max_new=4, decode=decode, halves=halves,
                **{"buckets": BUCKETS, **more},
            )  # fmt: skip
            return collector(params, tasks, groups or range(len(tasks)), jax.random.key(seed), **(call or {}))

    return run


@pytest.fixture(scope="session")
def stepwise():
    return ShortPrompt()
