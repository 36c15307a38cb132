"""The sampling loop: two halves of a batch take turns, one in the sampler while the other is in the environments.

An environment that is slow does not hold up the rest: a half waits a little for the answers to its last actions, plays
on with the rows that have theirs, and the late ones join a later turn. A rollout's tokens depend on its own texts and
keys alone, so they are the same whoever was late.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import jax
import numpy as np

from trca_jax.envs.base import Observation, Task
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.decoding import Decoding
from trca_jax.policy.sampler import Buckets, Sampler
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.episode import Episode, Step


@jax.jit
def _row_keys(key, rollouts, turns):
    """A key for each rollout [R] in its own turn [R]: the same whatever else is in the batch."""
    fold = lambda rollout, turn: jax.random.fold_in(jax.random.fold_in(key, rollout), turn)  # noqa: E731
    return jax.vmap(fold)(rollouts, turns)


class _Half:
    """Neighbouring slots of the pool with a sampler of their own; row i of the half plays in slots[i].

    asked: rows that wait for the answer to their last action. late: those that have waited in vain before.
    """

    def __init__(self, slots: range, sampler: Sampler):
        self.slots, self.sampler = slots, sampler

    def start(self, episodes: list[Episode]):
        self.episodes = episodes
        self.rows: list[list[int]] = [[] for _ in episodes]
        self.asked, self.late = list(range(len(episodes))), []
        self.histories: list[list[tuple[str, str]]] = [[] for _ in episodes]
        self.turn = 0
        self.sampler.reset()


class Collector:
    """Plays episodes with a policy. Compiled shapes and environment slots are kept between calls.

    pool: its slots are the batch size. max_steps: decisions an episode may take.
    decode: 'free', or 'admissible' (only token sequences of the commands on offer can be sampled).
    temperature: of training, which samples the whole distribution. halves: 2 overlaps environments with sampling.
    patience_s: how long a half waits for the answers to its last actions before it plays on without the late ones.
    """

    def __init__(
        self, config: Qwen2Config, codec: Codec, pool: EnvPool, *, max_steps: int, max_new: int,
        decode: str = "free", temperature: float = 1.0, buckets: Buckets | None = None, halves: int = 2,
        patience_s: float = 5.0,
    ):  # fmt: skip
        if decode not in ("free", "admissible"):
            raise ValueError(f"decode {decode!r} is unknown, expected 'free' or 'admissible'")
        if decode == "admissible" and not codec.prompt.opened:
            raise ValueError("decode 'admissible' needs a prompt that ends inside <action>; use decode='free' here")
        if decode == "admissible" and not codec.ends_commands:
            raise ValueError("decode 'admissible' needs </action> as the tokenizer's end token; use decode='free' here")
        if temperature <= 0:
            raise ValueError(f"temperature {temperature} must be above 0 in training; only an evaluation can be greedy")
        if patience_s <= 0:
            raise ValueError(f"patience_s {patience_s} must be above 0 seconds")
        self._codec, self._pool, self._max_steps, self._decode = codec, pool, max_steps, decode
        self._training, self._buckets, self._patience_s = Decoding(temperature), buckets or Buckets(), patience_s
        halves = min(halves, pool.slots)
        edges = [pool.slots * i // halves for i in range(halves + 1)]
        stops = jax.numpy.asarray(codec.stops(config.vocab_size))
        make = functools.partial(Sampler, config, max_new=max_new, stops=stops, buckets=self._buckets)
        self._halves = [_Half(range(a, b), make(b - a)) for a, b in pairwise(edges)]

    def __call__(
        self, params, tasks: Sequence[Task], groups: Sequence[int], key: jax.Array,
        on_turn: Callable[[int, int], None] = lambda turn, live: None, *, first: int = 0,
        decoding: Decoding | None = None,
    ) -> list[Episode]:  # fmt: skip
        """One episode a task; tasks may be fewer than slots. on_turn(turn, live) reports progress.

        first: the number of the first rollout. Random keys belong to (key, rollout's number, its turn), so processes
        that play a share each sample what one process would. decoding: for evaluation alone; None: that of training.
        Raises ValueError for more tasks than slots, and for a task whose first prompt is longer than the buckets.
        """
        if len(tasks) > self._pool.slots:
            raise ValueError(f"{len(tasks)} episodes do not fit into {self._pool.slots} environment slots")
        episodes = [Episode(t, g, self._codec.prompt.layout) for t, g in zip(tasks, groups, strict=True)]
        waiting: deque[_Half] = deque()
        for half in self._halves:
            half.start(episodes[half.slots.start : half.slots.stop])
            if half.asked:
                self._pool.reset([half.slots[i] for i in half.asked], [e.task for e in half.episodes])
                waiting.append(half)
        while waiting:
            half = waiting.popleft()
            if acting := self._observe(half):
                keys = self._keys(half, acting, key, first)
                self._act(params, half, acting, keys, decoding or self._training)
            if half.asked or half.late:
                waiting.append(half)
            if acting:
                on_turn(half.turn, sum(len(h.asked) + len(h.late) for h in self._halves))
        for half in self._halves:
            half.sampler.release()  # the update needs the memory
        return episodes

    def fits(self, text: str) -> bool:
        """Whether `write` can take this text."""
        return self._halves[0].sampler.fits(0, len(self._codec.message_ids(text)))

    def write(
        self, params, texts: Sequence[str], key: jax.Array, *, first: int = 0, decoding: Decoding | None = None
    ) -> list[str]:
        """Free answers to texts outside of episodes; first, decoding: as for episodes.

        Raises ValueError for a text that does not fit."""
        sampler = self._halves[0].sampler
        answers: list[str] = []
        while len(answers) < len(texts):
            rows = [self._codec.message_ids(text) for text in texts[len(answers) :][: sampler.rows]]
            numbers = first + len(answers) + np.arange(sampler.rows, dtype=np.int32)
            sampler.reset()
            keys = _row_keys(key, numbers, np.zeros_like(numbers))
            idle: list[list[int]] = [[] for _ in range(sampler.rows - len(rows))]
            handle = sampler.start_turn(params, rows + idle, keys, decoding=decoding or self._training)
            turn = sampler.finish_turn(handle)
            answers += [self._codec.text(turn.ids[i, : turn.count[i]].tolist()) for i in range(len(rows))]
        sampler.release()
        return answers

    def _observe(self, half: _Half) -> list[int]:
        """Takes in the answers of the environments that are in, ends episodes, and returns the rows that go on."""
        slots = half.slots
        # Only what was asked last is worth waiting for, or one slow row would cost the patience in every turn.
        self._pool.ready([slots[i] for i in half.asked or half.late], self._patience_s)
        asked = sorted(half.asked + half.late)
        arrived = self._pool.ready([slots[i] for i in asked], 0.0)
        half.asked, half.late = [], [i for i in asked if slots[i] not in arrived]
        acting = []
        for slot, seen in zip(arrived, self._pool.receive(arrived), strict=True):
            i = slot - slots.start
            episode = half.episodes[i]
            if not episode.observe(seen):
                continue
            if episode.steps:
                half.histories[i].append((episode.steps[-1].before, episode.steps[-1].action or ""))
            if len(episode.steps) >= self._max_steps or not self._extend(half, i, seen):
                episode.truncated = True
                continue
            acting.append(i)
        return acting

    def _extend(self, half: _Half, i: int, seen: Observation) -> bool:
        """Puts the next prompt behind row i; False if the row has no room for it and an answer."""
        episode, prompt = half.episodes[i], self._codec.prompt
        if episode.steps:
            text = prompt.next(episode.task.instruction, half.histories[i], seen.text, seen.admissible)
        else:
            text = prompt.first(episode.task.instruction, seen.text, seen.admissible)
        ids = self._codec.prompt_ids(text, episode.steps[-1].response_ids if episode.steps else None)
        kept = half.rows[i] if prompt.layout == "append" else []
        if not half.sampler.fits(len(kept), len(ids)):
            if not episode.steps:
                raise ValueError(self._too_long(episode.task, len(ids), half.sampler))
            return False
        half.rows[i] = kept + ids
        blank = np.zeros(0, np.int32)
        step = Step(np.array(ids, np.int32), blank, blank, None, None, (0, 0), seen.text, seen.admissible)
        episode.steps.append(step)
        return True

    def _too_long(self, task: Task, tokens: int, sampler: Sampler) -> str:
        name = "chunk" if tokens > self._buckets.chunk[-1] else "slots"
        largest = getattr(self._buckets, name)[-1]
        answer = "" if name == "chunk" else f" and an answer another {sampler.max_new}"
        return (
            f"task {task.id}: its first prompt has {tokens} tokens{answer}, but the largest bucket of agent.buckets."
            f"{name} is {largest}; enlarge agent.buckets.{name}"
        )

    def _keys(self, half: _Half, acting: list[int], key: jax.Array, first: int) -> jax.Array:
        turns = np.zeros(len(half.slots), np.int32)
        for i in acting:
            turns[i] = len(half.episodes[i].steps) - 1
        return _row_keys(key, first + np.array(half.slots, np.int32), turns)

    def _act(self, params, half: _Half, acting: list[int], keys: jax.Array, decoding: Decoding) -> None:
        """Samples an answer for the rows that act, and sends the actions to the environments."""
        rows: list[list[int] | None] = [None] * len(half.slots)
        if self._codec.prompt.layout == "stepwise":
            half.sampler.reset()
        else:
            for i in half.late:
                rows[i] = []
        for i in acting:
            rows[i] = half.rows[i]
        commands: list[dict[tuple[int, ...], str]] | None = None
        if self._decode == "admissible":
            commands = [{} for _ in rows]
            for i in acting:
                commands[i] = self._codec.commands(half.episodes[i].steps[-1].admissible)
        turn = half.sampler.finish_turn(half.sampler.start_turn(params, rows, keys, commands, decoding))
        half.turn += 1
        actions = []
        for i in acting:
            step = half.episodes[i].steps[-1]
            n = int(turn.count[i])
            step.response_ids, step.behaviour_logp = turn.ids[i, :n], turn.logp[i, :n]
            step.allowed = None if turn.allowed is None else turn.allowed[i, :n]
            sampled = step.response_ids.tolist()
            if commands and commands[i]:
                step.action, step.action_span = commands[i][tuple(sampled)], (0, n - 1)
            else:
                answer = self._codec.decode(sampled)
                step.answer = self._codec.text(sampled)
                parsed = self._codec.prompt.read(answer.text)
                step.action, step.action_span = parsed.action, answer.span(parsed.start, parsed.stop)
            half.rows[i] = half.rows[i] + sampled
            actions.append(step.sent(self._codec.prompt.whole))
        half.asked = acting
        self._pool.step([half.slots[i] for i in acting], actions)
