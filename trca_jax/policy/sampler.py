"""The sampler: append tokens to rows, then decode an answer; the key-value cache stays for the next turn.

It knows token ids only. One compiled `turn` serves both context layouts: a growing conversation appends what is new to
a row, a fresh prompt starts again from an empty row. Shapes come from few buckets, so few shapes are ever compiled.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.head import log_softmax, logits, pack_allowed
from trca_jax.policy.qwen2 import Cache, Qwen2, empty_cache, output_embedding


@dataclass(frozen=True)
class Buckets:
    """Padded sizes: tokens appended in a turn, slots of a row's cache, commands offered. Each ascending."""

    chunk: tuple[int, ...] = (32, 64, 128, 256)
    slots: tuple[int, ...] = (256, 384, 512, 768, 1024)
    commands: tuple[int, ...] = (96, 192)

    def __post_init__(self):
        for name, sizes in vars(self).items():
            if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
                raise ValueError(f"buckets.{name} = {sizes}: expected ascending positive sizes")


def bucket(size: int, sizes: Sequence[int], what: str) -> int:
    """The smallest of `sizes` that holds `size`; ValueError if none does."""
    for fit in sizes:
        if size <= fit:
            return fit
    raise ValueError(f"{what}: {size} exceeds the largest bucket {sizes[-1]}; enlarge the buckets in the config")


@struct.dataclass
class Turn:
    """What one turn sampled. ids, logp [B, A]; count [B] tokens, the stop token included; allowed bits or None."""

    ids: np.ndarray
    logp: np.ndarray
    count: np.ndarray
    allowed: np.ndarray | None


@functools.partial(jax.jit, static_argnames=("config", "max_new", "stop_id", "temperature"), donate_argnames="cache")
def _turn(params, cache: Cache, tokens, start, count, keys, commands, *, config, max_new, stop_id, temperature):
    """Appends tokens[:, :count] at slots start.. and samples up to max_new tokens; see `Sampler.turn`."""
    model, table = Qwen2(config), output_embedding(config, params)
    rows = jnp.arange(tokens.shape[0])
    apply = functools.partial(model.apply, {"params": params})

    def choose(i, hidden, state):
        """Samples token i of every row from the hidden state before it."""
        done, alive, ids, logps, bits = state
        allowed = None
        if commands is not None:
            following = jnp.where(alive, commands[:, :, i], config.vocab_size)
            mask = jnp.zeros((len(rows), config.vocab_size + 1), bool).at[rows[:, None], following].set(True)
            allowed = pack_allowed(mask[:, :-1])
            bits = bits.at[:, i].set(jnp.where(done[:, None], 0, allowed))
        logp = log_softmax(logits(hidden, table), temperature, allowed)
        # The key belongs to the row and the token, so a sample does not depend on who else is in the batch.
        token = jax.vmap(lambda k, row: jax.random.categorical(jax.random.fold_in(k, i), row))(keys, logp)
        ids = ids.at[:, i].set(jnp.where(done, 0, token))
        logps = logps.at[:, i].set(jnp.where(done, 0.0, logp[rows, token]))
        if commands is not None:
            alive &= commands[:, :, i] == token[:, None]
        return done | (token == stop_id), alive, ids, logps, bits

    def step(carry):
        i, cache, state = carry
        previous = state[2][:, i - 1]
        hidden, cache = apply(previous[:, None], (start + count + i - 1)[:, None], cache=cache)
        return i + 1, cache, choose(i, hidden[:, 0], state)

    idle = count == 0
    blank = jnp.zeros((len(rows), max_new), jnp.int32)
    bits = None if commands is None else jnp.zeros((*blank.shape, -(-config.vocab_size // 8)), jnp.uint8)
    alive = None if commands is None else commands[:, :, 0] >= 0
    hidden, cache = apply(tokens, start[:, None] + jnp.arange(tokens.shape[1]), cache=cache)
    state = choose(0, hidden[rows, count - 1], (idle, alive, blank, blank.astype(jnp.float32), bits))
    unfinished = lambda carry: (carry[0] < max_new) & ~carry[2][0].all()  # noqa: E731
    used, cache, (_, _, ids, logps, bits) = jax.lax.while_loop(unfinished, step, (1, cache, state))
    stopped = ids == stop_id
    sampled = jnp.where(stopped.any(axis=1), stopped.argmax(axis=1) + 1, used)
    return cache, ids, logps, jnp.where(idle, 0, sampled), bits


class Sampler:
    """A batch of rows, each a growing sequence of tokens with its keys and values in a cache.

    rows: batch size B. max_new: most tokens sampled in a turn. stop_id: ends an answer and is part of it.
    """

    def __init__(
        self, config: Qwen2Config, rows: int, *, max_new: int, stop_id: int, temperature: float, buckets: Buckets
    ):
        if temperature <= 0:
            raise ValueError(f"temperature {temperature} must be positive; use a small one for nearly greedy sampling")
        self._config, self._rows, self._buckets = config, rows, buckets
        self._static = {"config": config, "max_new": max_new, "stop_id": stop_id, "temperature": temperature}
        self.max_new = max_new
        self._cached = np.zeros(rows, np.int32)
        self._cache = None

    def fits(self, kept: int, added: int) -> bool:
        """Whether a row of `kept` tokens can take `added` more and an answer."""
        # One kept token, the last answer's, is not in the cache yet.
        return added + (kept > 0) <= self._buckets.chunk[-1] and kept + added + self.max_new <= self._buckets.slots[-1]

    def reset(self) -> None:
        """Empties every row."""
        self._cached[:] = 0

    def start_turn(self, params, rows: Sequence[Sequence[int]], keys: jax.Array, commands=None):
        """Sends one turn to the device and returns a handle for `finish_turn`; the host is free meanwhile.

        rows: the whole token sequence of each row so far; only the part not cached yet is computed. An empty sequence
        is an idle row. keys [B] one random key a row. commands: per row the token sequences that may be sampled (each
        ends with the stop token), or None for free sampling. Raises ValueError for a row that does not continue what is
        cached, and for sizes beyond the largest bucket.
        """
        lengths = np.array([len(row) for row in rows], np.int32)
        known = np.where(lengths > 0, self._cached, 0)
        count = lengths - known
        if (wrong := np.flatnonzero((lengths > 0) & (count < 1))).size:
            b = wrong[0]
            raise ValueError(f"row {b} has {lengths[b]} tokens, {known[b]} are cached; append to it, or reset() first")
        width = bucket(int(count.max()), self._buckets.chunk, "tokens appended in one turn")
        # Padding behind a row needs no room: writes that fall off the end are dropped.
        slots = bucket(int(lengths.max()) + self.max_new, self._buckets.slots, "tokens of a row and its answer")
        self._grow(slots)
        tokens = np.zeros((len(rows), width), np.int32)
        for b, row in enumerate(rows):
            tokens[b, : count[b]] = row[known[b] :]
        table = None if commands is None else self._command_table(commands)
        self._cache, *out = _turn(params, self._cache, tokens, known, count, keys, table, **self._static)
        return known + count, out

    def finish_turn(self, handle) -> Turn:
        """Waits for a turn and returns what it sampled."""
        end, out = handle
        ids, logp, count, bits = jax.device_get(out)
        # The last sampled token has no keys and values in the cache; it is appended with the next turn.
        self._cached = np.maximum(end + count - 1, 0)
        return Turn(ids, logp, count, bits)

    def _grow(self, slots: int) -> None:
        if self._cache is None or not self._cached.any():
            self._cache = empty_cache(self._config, self._rows, slots)
        elif (more := slots - self._cache.k.shape[3]) > 0:
            self._cache = jax.tree.map(lambda x: jnp.pad(x, ((0, 0), (0, 0), (0, 0), (0, more), (0, 0))), self._cache)

    def _command_table(self, commands) -> np.ndarray:
        """[B, C, A] token ids, -1 behind a command's end; a row without commands may sample anything."""
        width = bucket(max(len(c) for c in commands), self._buckets.commands, "commands offered")
        table = np.full((len(commands), width, self.max_new), -1, np.int32)
        for b, row in enumerate(commands):
            for c, ids in enumerate(row):
                table[b, c, : len(ids)] = ids
        return table
