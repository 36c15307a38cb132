"""The extra looks that some methods take: gold answers, hindsight and token values, each only for who needs it.

Gold and hindsight log-probabilities are taken along branches: tokens appended to a part of a row. The row's keys and
values are computed once and shared by all of its branches.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from trca_jax.credit.methods import Method
from trca_jax.credit.types import CreditBatch
from trca_jax.envs.base import Benchmark
from trca_jax.learner.critic import token_values
from trca_jax.learner.state import TrainState
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.head import token_logp
from trca_jax.policy.qwen2 import Qwen2, empty_cache, output_embedding
from trca_jax.policy.sampler import bucket
from trca_jax.policy.sharding import constrain
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.pack import ROW_LENGTHS, TokenBatch

_CHUNKS = (16, 32, 64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True)
class Branch:
    """Tokens put behind the first `start` (at least 1) tokens of a row, of which those from `first` on are scored.

    allowed: bits [scored, V/8] of the tokens that could be sampled there, or None.
    """

    start: int
    ids: tuple[int, ...]
    first: int
    allowed: np.ndarray | None = None


@functools.partial(jax.jit, static_argnames=("config", "slots"))
def _read(params, tokens, *, config: Qwen2Config, slots: int):
    """The cache of whole rows [B, L], with room for `slots` tokens."""
    positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
    cache = empty_cache(config, tokens.shape[0], slots)
    return Qwen2(config).apply({"params": params}, tokens, positions, cache=cache)[1]


@functools.partial(jax.jit, static_argnames=("config", "temperature"))
def _score(params, cache, tokens, start, scored, allowed, *, config: Qwen2Config, temperature: float):
    """Mean log π of the scored tokens [B]; tokens [B, C] stand at positions start.. and attend to what lies before."""
    positions = start[:, None] + jnp.arange(tokens.shape[1])
    hidden, _ = Qwen2(config).apply({"params": params}, tokens, positions, cache=cache)
    bits = None if allowed is None else allowed[:, 1:]
    logp, _ = token_logp(hidden[:, :-1], output_embedding(config, params), tokens[:, 1:], temperature, bits)
    scored = scored[:, 1:]
    mean = jnp.where(scored, logp, 0.0).sum(axis=1) / jnp.maximum(scored.sum(axis=1), 1)
    return constrain(mean, config.rules, "length")  # whole on every device, so that the host can read it


def branch_logp(
    config: Qwen2Config, params, rows: Sequence[Sequence[int]], branches: Sequence[Sequence[Branch]], *,
    temperature: float, batch: int,
) -> list[list[float]]:  # fmt: skip
    """Mean log-probability of the scored tokens of every branch, row by row.

    rows: token ids. branches: those of each row, any number. batch: rows read at once. Equal, up to rounding, to
    scoring each branch behind its part of the row from scratch.
    """
    out: list[list[float]] = [[0.0] * len(own) for own in branches]
    width = -(-config.vocab_size // 8)
    constrained = any(branch.allowed is not None for own in branches for branch in own)
    for begin in range(0, len(rows), batch):
        part = range(begin, min(begin + batch, len(rows)))
        if not any(branches[b] for b in part):
            continue
        length = bucket(max(len(rows[b]) for b in part), ROW_LENGTHS, "tokens of a row")
        # The token before a branch is read again with it, as the first scored token is predicted there.
        chunk = bucket(1 + max(len(x.ids) for b in part for x in branches[b]), _CHUNKS, "tokens of a branch")
        tokens = np.zeros((batch, length), np.int32)
        for i, b in enumerate(part):
            tokens[i, : len(rows[b])] = rows[b]
        cache = _read(params, tokens, config=config, slots=length + chunk)
        pending = []
        for k in range(max(len(branches[b]) for b in part)):
            ids, scored = np.zeros((batch, chunk), np.int32), np.zeros((batch, chunk), bool)
            start = np.zeros(batch, np.int32)
            allowed = np.zeros((batch, chunk, width), np.uint8) if constrained else None
            chosen = [(i, b) for i, b in enumerate(part) if k < len(branches[b])]
            for i, b in chosen:
                branch = branches[b][k]
                stop = 1 + len(branch.ids)
                start[i] = branch.start - 1
                ids[i, :stop] = (rows[b][branch.start - 1], *branch.ids)
                scored[i, 1 + branch.first : stop] = True
                if branch.allowed is not None:
                    allowed[i, 1 + branch.first : stop] = branch.allowed
            pending.append((chosen, _score(params, cache, ids, start, scored, allowed, config=config,
                                           temperature=temperature)))  # fmt: skip
        for k, (chosen, means) in enumerate(pending):
            means = np.asarray(means)
            for i, b in chosen:
                out[b][k] = float(means[i])
    return out


def _rows(episode: Episode) -> tuple[list[list[int]], list[tuple[int, int]]]:
    """The token rows of an episode, and for each step its row and where its prompt begins there."""
    rows: list[list[int]] = []
    places = []
    for step in episode.steps:
        if not rows or episode.layout == "stepwise":
            rows.append([])
        places.append((len(rows) - 1, len(rows[-1])))
        rows[-1] += [*map(int, step.prompt_ids), *map(int, step.response_ids)]
    return rows, places


def _history(episode: Episode, steps: int) -> list[tuple[str, str]]:
    return [(step.before, step.action or "") for step in episode.steps[:steps]]


def _prompt_ids(codec: Codec, episode: Episode, t: int, observation: str) -> list[int]:
    """The prompt of step t (or of one more step after the last) with this observation."""
    admissible = episode.steps[t].admissible if t < len(episode.steps) else ()
    if t == 0:
        text = codec.prompt.first(episode.task.instruction, observation, admissible)
    else:
        text = codec.prompt.next(episode.task.instruction, _history(episode, t), observation, admissible)
    return codec.prompt_ids(text, episode.steps[t - 1].response_ids if t else None)


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """How many first tokens two sequences share."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def hindsight_branches(episode: Episode, codec: Codec, hint: str) -> tuple[list[list[int]], list[list[Branch]]]:
    """Every response behind its own prompt, into whose observation `hint` puts {final}, the last text that the episode
    showed, before {now}; one branch a step, in the order of the steps."""
    old, places = _rows(episode)
    rows: list[list[int]] = []
    branches: list[list[Branch]] = []
    current = None
    final = episode.steps[-1].after or episode.steps[-1].before  # an answer to a question is met with silence
    for t, (step, (row, at)) in enumerate(zip(episode.steps, places, strict=True)):
        told = hint.format(final=final, now=step.before)
        ids = _prompt_ids(codec, episode, t, told)
        answer = [int(i) for i in step.response_ids]
        same = _shared(old[row][at:], ids)
        if at + same == 0:  # nothing to branch off from: a row of its own
            rows.append(ids)
            branches.append([Branch(1, (*ids[1:], *answer), len(ids) - 1, step.allowed)])
            continue
        if current != row:
            rows.append(old[row])
            branches.append([])
            current = row
        branches[-1].append(Branch(at + same, (*ids[same:], *answer), len(ids) - same, step.allowed))
    return rows, branches


def gold_branches(
    episode: Episode, codec: Codec, lead_in: str, gold: str
) -> tuple[list[list[int]], list[list[Branch]]]:
    """The gold answer behind `lead_in` before every step and after the last one; one branch a state, in order."""
    rows, places = _rows(episode)
    branches: list[list[Branch]] = [[] for _ in rows]
    lead, answer = (codec.text_ids(text) for text in (lead_in, gold))
    for step, (row, at) in zip(episode.steps, places, strict=True):
        branches[row].append(Branch(at + len(step.prompt_ids), (*lead, *answer), len(lead)))
    end = _prompt_ids(codec, episode, len(episode.steps), episode.steps[-1].after)
    if episode.layout == "stepwise":
        rows.append(end)
        branches.append([Branch(len(end), (*lead, *answer), len(lead))])
    else:
        branches[-1].append(Branch(len(rows[-1]), (*end, *lead, *answer), len(end) + len(lead)))
    return rows, branches


class Signals:
    """Fills in the signals that a method needs beyond the judged batch.

    hint, lead_in: texts of `hindsight_branches` and `gold_branches`. max_new: tokens of a response at most. needed:
    whether there is anything to fill in.
    Raises ValueError, before anything is played, if the benchmark cannot give what the method needs.
    """

    def __init__(
        self, name: str, method: Method, benchmark: Benchmark, config: Qwen2Config, codec: Codec, *,
        hint: str, lead_in: str, temperature: float, max_new: int, batch: int,
    ):  # fmt: skip
        self._needs, self._benchmark, self._codec = method.needs, benchmark, codec
        self.needed = bool(method.needs & {"gold_logp", "tool", "hindsight_logp", "token_values", "golden_similarity"})
        self._hint, self._lead_in, self._max_new, self._batch = hint, lead_in, max_new, batch
        self._branches = functools.partial(branch_logp, config, temperature=temperature, batch=batch)
        self._values = jax.jit(lambda *rows: constrain(token_values(config, *rows), config.rules, "length", "length"))
        for signal, missing in (("gold_logp", "gold answers"), ("golden_similarity", "golden documents")):
            if signal in method.needs and missing not in benchmark.offers:
                raise ValueError(
                    f"method {name!r} needs {missing}, and {benchmark.name} has none; use a benchmark of questions, "
                    "such as searchqa, or another method"
                )

    def __call__(
        self,
        state: TrainState,
        reference: Callable[[], dict],
        episodes: Sequence[Episode],
        rows: TokenBatch,
        batch: CreditBatch,
    ) -> CreditBatch:
        """The batch with its signals. gold_logp is taken under the policy, or under the frozen reference for a method
        that also reads `tool` (TRACE); hindsight under the policy; values from state.critic. reference(): the frozen
        parameters, asked for only if they are needed."""
        found = {}
        if "gold_logp" in self._needs:
            frozen = "tool" in self._needs
            found["gold_logp"] = self._gold(reference() if frozen else state.params, episodes, batch)
        if "tool" in self._needs:
            last = np.array([not e.truncated for e in episodes])  # an episode that was not cut off ends with an answer
            found["tool"] = np.arange(batch.r_env.shape[1]) < (batch.length - last)[:, None]
        if "hindsight_logp" in self._needs:
            found["hindsight_logp"] = self._hindsight(state.params, episodes, batch)
        if "token_values" in self._needs:
            found |= self._token_values(state.critic.params, rows, batch)
        if "golden_similarity" in self._needs:
            found |= self._golden(episodes, batch)
        return dataclasses.replace(batch, **found)

    def _spread(self, make: Callable[[Episode], tuple], params, episodes, shape) -> np.ndarray:
        """Branches of every episode that counts, scored together -> [R, states]."""
        out, rows, branches, owners = np.zeros(shape, np.float32), [], [], []
        for r, episode in enumerate(episodes):
            if episode.failure is None and episode.steps:
                own_rows, own_branches = make(episode)
                rows += own_rows
                branches += own_branches
                owners += [r] * len(own_rows)
        means: dict[int, list[float]] = {}
        for r, values in zip(owners, self._branches(params, rows, branches), strict=True):
            means.setdefault(r, []).extend(values)
        for r, values in means.items():
            out[r, : len(values)] = values
        return out

    def _gold(self, params, episodes, batch: CreditBatch) -> np.ndarray:
        rollouts, steps = batch.r_env.shape
        make = lambda e: gold_branches(e, self._codec, self._lead_in, self._benchmark.gold(e.task))  # noqa: E731
        return self._spread(make, params, episodes, (rollouts, steps + 1))

    def _hindsight(self, params, episodes, batch: CreditBatch) -> np.ndarray:
        make = lambda e: hindsight_branches(e, self._codec, self._hint)  # noqa: E731
        return self._spread(make, params, episodes, batch.r_env.shape)

    def _golden(self, episodes, batch: CreditBatch) -> dict[str, np.ndarray]:
        told = [self._benchmark.golden(e.task, [] if e.failure else [step.after for step in e.steps]) for e in episodes]
        documents = max((len(match) for similarity, _ in told for match in similarity), default=0)
        similarity = np.full((*batch.r_env.shape, max(documents, 1)), -1.0, np.float32)
        redundancy = np.zeros(batch.r_env.shape, np.float32)
        for r, (matches, repeated) in enumerate(told):
            for t, match in enumerate(matches):
                similarity[r, t, : len(match)] = match
            redundancy[r, : len(repeated)] = repeated
        return {"golden_similarity": similarity, "redundancy": redundancy}

    def _token_values(self, critic, rows: TokenBatch, batch: CreditBatch) -> dict[str, np.ndarray]:
        shape = (*batch.r_env.shape, self._max_new)
        values, mask = np.zeros(shape, np.float32), np.zeros(shape, bool)
        for begin in range(0, len(rows.tokens), self._batch):
            part = jax.tree.map(lambda x: x[begin : begin + self._batch], rows)  # noqa: B023
            at = part.response_mask
            place = (*np.divmod(part.transition[at], shape[1]), part.place[at])
            values[place] = np.asarray(self._values(critic, part))[at]
            mask[place] = True
        return {"token_values": values, "token_mask": mask}
