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
from jax.sharding import Mesh, NamedSharding

from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.decoding import Decoding, distribution, draw
from trca_jax.policy.head import logits, pack_allowed
from trca_jax.policy.qwen2 import CACHE_AXES, Cache, Qwen2, empty_cache, output_embedding
from trca_jax.policy.tokens import STOPPED


@dataclass(frozen=True)
class Buckets:
    """Padded sizes: tokens appended in a turn, slots of a row's cache, commands offered; and by what the batch may be
    divided as its rows end, 1 (all rows) first. Each ascending."""

    chunk: tuple[int, ...] = (32, 64, 128, 256)
    slots: tuple[int, ...] = (256, 384, 512, 768, 1024)
    commands: tuple[int, ...] = (96, 192)
    batch: tuple[int, ...] = (1, 2, 4)

    def __post_init__(self):
        for name, sizes in vars(self).items():
            if not sizes or list(sizes) != sorted(set(sizes)) or sizes[0] < 1:
                raise ValueError(f"buckets.{name} = {sizes}: expected ascending positive sizes")
        if self.batch[0] != 1:
            raise ValueError(f"buckets.batch = {self.batch}: expected 1, the whole batch, as the first divisor")


def bucket(size: int, sizes: Sequence[int], what: str) -> int:
    """The smallest of `sizes` that holds `size`; ValueError if none does."""
    for fit in sizes:
        if size <= fit:
            return fit
    raise ValueError(f"{what}: {size} exceeds the largest bucket {sizes[-1]}; enlarge the buckets in the config")


@struct.dataclass
class Turn:
    """What one turn sampled. ids, logp [R, A]; count [R] tokens, the last one of an answer included; allowed: bits
    [R, A, V/8] or None. All zeros for a row that took no part."""

    ids: np.ndarray
    logp: np.ndarray
    count: np.ndarray
    allowed: np.ndarray | None


@functools.partial(jax.jit, static_argnames=("config", "max_new", "decoding"), donate_argnames="cache")
def _turn(
    params, cache: Cache, tokens, start, count, batch, keys, stops, commands, *, config, max_new, decoding: Decoding
):  # fmt: skip
    """Appends tokens[:, :count] at slots start.. of the rows `batch` and samples up to max_new tokens each."""
    model, table, keys = Qwen2(config), output_embedding(config, params), keys[batch]
    rows = jnp.arange(tokens.shape[0])
    apply = functools.partial(model.apply, {"params": params})

    def choose(i, hidden, state):
        """Samples token i of every row from the hidden state before it."""
        at, sampled, alive, ids, logps, bits = state
        done = at == STOPPED
        allowed = None
        if commands is not None:
            following = jnp.where(alive, commands[:, :, i], config.vocab_size)
            mask = jnp.zeros((len(rows), config.vocab_size + 1), bool).at[rows[:, None], following].set(True)
            allowed = pack_allowed(mask[:, :-1])
            bits = bits.at[:, i].set(jnp.where(done[:, None], 0, allowed))
        logp = distribution(logits(hidden, table), decoding, allowed)
        # The key belongs to the row and the token, so a sample does not depend on who else is in the batch.
        token = draw(jax.vmap(jax.random.fold_in, (0, None))(keys, i), logp, decoding)
        ids = ids.at[:, i].set(jnp.where(done, 0, token))
        logps = logps.at[:, i].set(jnp.where(done, 0.0, logp[rows, token]))
        if commands is not None:
            alive &= commands[:, :, i] == token[:, None]
        return jnp.where(done, STOPPED, stops[at, token]), sampled + ~done, alive, ids, logps, bits

    def step(carry):
        i, cache, state = carry
        previous = state[3][:, i - 1]
        hidden, cache = apply(previous[:, None], (start + count + i - 1)[:, None], cache=cache)
        return i + 1, cache, choose(i, hidden[:, 0], state)

    # A pausing row is done from the start. What it writes lies behind its end, where nobody looks.
    at = jnp.where(count == 0, STOPPED, 0).astype(stops.dtype)
    blank = jnp.zeros((len(rows), max_new), jnp.int32)
    bits = None if commands is None else jnp.zeros((*blank.shape, -(-config.vocab_size // 8)), jnp.uint8)
    alive = None if commands is None else commands[:, :, 0] >= 0
    hidden, cache = apply(tokens, start[:, None] + jnp.arange(tokens.shape[1]), cache=cache)
    state = (at, jnp.zeros_like(count), alive, blank, blank.astype(jnp.float32), bits)
    state = choose(0, hidden[rows, count - 1], state)
    unfinished = lambda carry: (carry[0] < max_new) & (carry[2][0] != STOPPED).any()  # noqa: E731
    _, cache, (_, sampled, _, ids, logps, bits) = jax.lax.while_loop(unfinished, step, (1, cache, state))
    return cache, ids, logps, sampled, bits


@functools.partial(jax.jit, static_argnames="slots")
def _regroup(cache: Cache, places, *, slots: int) -> Cache:
    """The rows at these places of the batch, each with room for `slots` tokens."""
    more = [(0, 0)] * 3 + [(0, slots - cache.k.shape[3]), (0, 0)]
    return jax.tree.map(lambda x: jnp.pad(x[:, places], more), cache)


def lower_turn(config: Qwen2Config, params, mesh: Mesh, *, rows: int, prompt: int, max_new: int, decoding: Decoding):
    """A first turn of `rows` prompts of so many tokens, lowered for a mesh (the context), and its cache's shapes.

    params: shapes with their shardings.
    """
    placed = lambda x: NamedSharding(mesh, config.rules.spec(CACHE_AXES, x.shape, dict(mesh.shape)))  # noqa: E731
    cache = empty_cache.eval_shape(config, rows, prompt + max_new)
    cache = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placed(x)), cache)
    ints = lambda *shape: jax.ShapeDtypeStruct(shape, jnp.int32)  # noqa: E731
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    stops = jax.ShapeDtypeStruct((1, config.vocab_size), jnp.int8)
    lowered = _turn.lower(
        params, cache, ints(rows, prompt), ints(rows), ints(rows), ints(rows), keys, stops, None,
        config=config, max_new=max_new, decoding=decoding,
    )  # fmt: skip
    return lowered, cache


class Sampler:
    """Rows, each a growing sequence of tokens with its keys and values in a cache; those still needed make the batch.

    rows: so many of them, R. max_new: most tokens sampled in a turn. stops: the automaton of `tokens.stop_table` that
    ends an answer; the last token belongs to it. Raises ValueError for stops of another vocabulary.
    """

    def __init__(self, config: Qwen2Config, rows: int, *, max_new: int, stops: np.ndarray, buckets: Buckets):
        if stops.shape[1] != config.vocab_size:
            raise ValueError(f"stops are for {stops.shape[1]} ids, expected the model's {config.vocab_size}")
        self._config, self._buckets = config, buckets
        self._batches = sorted({-(-rows // part) for part in buckets.batch})
        self._stops = jnp.asarray(stops)
        self.rows, self.max_new = rows, max_new
        self._cached = np.zeros(rows, np.int32)
        self._cache = None
        self.reset()

    def fits(self, kept: int, added: int) -> bool:
        """Whether a row of `kept` tokens can take `added` more and an answer."""
        # One kept token, the last answer's, is not in the cache yet.
        return added + (kept > 0) <= self._buckets.chunk[-1] and kept + added + self.max_new <= self._buckets.slots[-1]

    def reset(self) -> None:
        """Empties every row, and takes back those that had ended."""
        self._cached[:] = 0
        self._batch = list(range(self.rows))  # the row at each place

    def release(self) -> None:
        """Empties every row, and gives the cache's memory back until the next turn."""
        self.reset()
        self._cache = None

    def start_turn(
        self, params, rows: Sequence[Sequence[int] | None], keys: jax.Array, commands=None,
        decoding: Decoding = Decoding(),  # noqa: B008
    ):  # fmt: skip
        """Sends one turn to the device and returns a handle for `finish_turn`; the host is free meanwhile.

        rows [R]: the whole token sequence of each row so far; only the part not cached yet is computed. An empty
        sequence is a row that pauses, None one that has ended: when those left fit a smaller bucket, the cache is
        gathered into it. keys [R] one random key a row. commands [R]: per row the token sequences that may be sampled
        (each ends with a token that ends an answer; none: anything), or None for free sampling. decoding: how tokens
        are drawn; what is trained on needs the plain `Decoding(temperature)`, as the trainer knows no other one.
        Raises ValueError for a row that does not continue what is cached or has ended, and for sizes beyond the largest
        bucket.
        """
        lengths = np.array([len(row or ()) for row in rows], np.int32)
        count = np.where(lengths > 0, lengths - self._cached, 0)
        if (wrong := np.flatnonzero((lengths > 0) & (count < 1))).size:
            b = wrong[0]
            known = f"{self._cached[b]} are cached"
            raise ValueError(f"row {b} has {lengths[b]} tokens, {known}; append to it, or reset() first")
        if ended := [b for b in np.flatnonzero(lengths).tolist() if b not in self._batch]:
            raise ValueError(f"rows {ended} have ended; reset() first")
        width = bucket(int(count.max()), self._buckets.chunk, "tokens appended in one turn")
        # Padding behind a row needs no room: writes that fall off the end are dropped.
        slots = bucket(int(lengths.max()) + self.max_new, self._buckets.slots, "tokens of a row and its answer")
        self._fit([b for b in self._batch if rows[b] is not None], slots)
        batch = np.array(self._batch)
        tokens = np.zeros((len(batch), width), np.int32)
        for place, b in enumerate(batch):
            if count[b]:
                tokens[place, : count[b]] = rows[b][self._cached[b] :]
        table = None if commands is None else self._command_table([commands[b] for b in batch])
        self._cache, *out = _turn(
            params, self._cache, tokens, self._cached[batch], count[batch], batch, keys, self._stops, table,
            config=self._config, max_new=self.max_new, decoding=decoding,
        )  # fmt: skip
        return batch, count, out

    def finish_turn(self, handle) -> Turn:
        """Waits for a turn and returns what it sampled."""
        batch, count, out = handle

        def spread(x):
            full = np.zeros((self.rows, *x.shape[1:]), x.dtype)
            full[batch] = x
            return full

        ids, logp, sampled, allowed = jax.tree.map(spread, jax.device_get(tuple(out)))
        # The last sampled token has no keys and values in the cache; it is appended with the next turn.
        self._cached = self._cached + np.where(count > 0, count + sampled - 1, 0)
        return Turn(ids, logp, sampled, allowed)

    def _fit(self, live: list[int], slots: int) -> None:
        """Sees to it that the batch is the smallest that holds the live rows, and has so many slots."""
        size = bucket(len(live), self._batches, "rows")
        rest = [b for b in self._batch if b not in live]
        batch = self._batch if size == len(self._batch) else live + rest[: size - len(live)]
        held = None if self._cache is None else (self._cache.k.shape[1], self._cache.k.shape[3])
        if not self._cached.any():
            if held != (size, slots):
                self._cache = None  # the old one goes before the new one comes
                self._cache = empty_cache(self._config, size, slots)
        elif batch != self._batch or slots > held[1]:
            places = np.array([self._batch.index(b) for b in batch])
            self._cache = _regroup(self._cache, places, slots=max(slots, held[1]))
        self._batch = batch

    def _command_table(self, commands) -> np.ndarray:
        """[B, C, A] token ids, -1 behind a command's end; a row without commands may sample anything."""
        width = bucket(max(len(c) for c in commands), self._buckets.commands, "commands offered")
        table = np.full((len(commands), width, self.max_new), -1, np.int32)
        for b, row in enumerate(commands):
            for c, ids in enumerate(row):
                table[b, c, : len(ids)] = ids
        return table
