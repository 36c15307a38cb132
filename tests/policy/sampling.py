"""What the tests of the sampler share: a tiny sampler, and one turn of it."""

import jax
import numpy as np
from tiny import TINY

from trca_jax.policy.decoding import Decoding
from trca_jax.policy.sampler import Buckets, Sampler
from trca_jax.policy.tokens import stop_table

STOP, NEW, T = 3, 5, 0.8
STOPS = stop_table([], [], [STOP], TINY.vocab_size)
DRAWN = Decoding(T)
BUCKETS = Buckets(chunk=(8, 16), slots=(16, 32, 64), commands=(4,))
# Shared beginnings, different lengths, one that is nothing but the stop token, one that fills all NEW tokens.
COMMANDS = [(10, 11, STOP), (10, 11, 12, 13, STOP), (20, STOP), (STOP,)]


def stopping(params):
    """The shared model, but the stop token is likely in some places, so that answers differ in length."""
    return params | {"embedding": params["embedding"].at[STOP].multiply(3)}


def make(rows=3, **changes):
    """A sampler whose answers end with STOP alone."""
    return Sampler(TINY, rows, **{"max_new": NEW, "stops": STOPS, "buckets": BUCKETS} | changes)


def sample(sampler, params, rows, keys, commands=None, decoding=DRAWN):
    return sampler.finish_turn(sampler.start_turn(params, rows, keys, commands, decoding))


def row_keys(turn, rows, seed=0):
    return jax.vmap(lambda r: jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), r), turn))(np.arange(rows))
