"""The sampling loop: two halves of a batch take turns, one in the sampler while the other is in the environments."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from transformers import PreTrainedTokenizerBase

from trca_jax.agents.parse import parse, token_span
from trca_jax.agents.prompts import Prompt
from trca_jax.envs.base import Observation, Task
from trca_jax.envs.pool import EnvPool
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.sampler import Buckets, Sampler
from trca_jax.rollout.episode import Episode, Step


@functools.partial(jax.jit, static_argnames="n")
def _row_keys(key, first, turn, n):
    """A key for each of the rollouts first.. first+n-1: the same whatever else is in the batch."""
    fold = lambda row: jax.random.fold_in(jax.random.fold_in(key, row), turn)  # noqa: E731
    return jax.vmap(fold)(first + jnp.arange(n))


class Codec:
    """Text to ids and back for one agent; words and commands are encoded once."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Prompt, max_new: int):
        self.prompt, self._tokenizer = prompt, tokenizer
        self._max_new = max_new
        self._encode = functools.lru_cache(maxsize=1 << 16)(self._encode_once)

    @property
    def stop_id(self) -> int:
        return self._tokenizer.eos_token_id

    def _encode_once(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False))

    def prompt_ids(self, text: str) -> list[int]:
        if self.prompt.layout == "stepwise" and self._tokenizer.chat_template:
            message = [{"role": "user", "content": text}]
            return list(self._tokenizer.apply_chat_template(message, add_generation_prompt=True, return_dict=False))
        return list(self._encode(text))

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a text as it stands, without a chat template."""
        return list(self._encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids))

    def answer_ids(self, action: str) -> tuple[int, ...]:
        """The answer that gives this action, as tokens (prompts that end inside the action tag only)."""
        return self._encode(f"{action} </action>")

    def command_ids(self, admissible: Sequence[str]) -> list[tuple[int, ...]]:
        """The answers that constrained decoding may give; commands longer than an answer can be are left out."""
        answers = (self.answer_ids(command) for command in admissible if command != "help")
        return [ids for ids in answers if len(ids) <= self._max_new]


class _Half:
    """Neighbouring slots of the pool with a sampler of their own."""

    def __init__(self, slots: range, sampler: Sampler):
        self.slots, self.sampler = slots, sampler

    def start(self, episodes: list[Episode]):
        self.episodes = episodes
        self.rows: list[list[int]] = [[] for _ in episodes]
        self.live = list(range(len(episodes)))
        self.histories: list[list[tuple[str, str]]] = [[] for _ in episodes]
        self.turn = 0
        self.sampler.reset()


class Collector:
    """Plays episodes with a policy. Compiled shapes and environment slots are kept between calls.

    pool: its slots are the batch size; make it before JAX is used. max_steps: decisions an episode may take.
    decode: 'free', or 'admissible' (only token sequences of the commands on offer can be sampled).
    halves: 2 overlaps environments with sampling.
    """

    def __init__(
        self, config: Qwen2Config, codec: Codec, pool: EnvPool, *, max_steps: int, max_new: int,
        decode: str = "free", temperature: float = 1.0, buckets: Buckets | None = None, halves: int = 2,
    ):  # fmt: skip
        if decode not in ("free", "admissible"):
            raise ValueError(f"decode {decode!r} is unknown, expected 'free' or 'admissible'")
        if decode == "admissible" and not codec.prompt.opened:
            raise ValueError("decode 'admissible' needs a prompt that ends inside <action>; use decode='free' here")
        if decode == "admissible" and codec.answer_ids("look")[-1] != codec.stop_id:
            raise ValueError("decode 'admissible' needs </action> as the tokenizer's end token; use decode='free' here")
        self._codec, self._pool, self._max_steps, self._decode = codec, pool, max_steps, decode
        halves = min(halves, pool.slots)
        edges = [pool.slots * i // halves for i in range(halves + 1)]
        make = functools.partial(
            Sampler,
            config,
            max_new=max_new,
            stop_id=codec.stop_id,
            temperature=temperature,
            buckets=buckets or Buckets(),
        )
        self._halves = [_Half(range(a, b), make(b - a)) for a, b in pairwise(edges)]

    def __call__(
        self, params, tasks: Sequence[Task], groups: Sequence[int], key: jax.Array,
        on_turn: Callable[[int, int], None] = lambda turn, live: None,
    ) -> list[Episode]:  # fmt: skip
        """One episode a task; tasks may be fewer than slots. on_turn(turn, live) reports progress."""
        if len(tasks) > self._pool.slots:
            raise ValueError(f"{len(tasks)} episodes do not fit into {self._pool.slots} environment slots")
        episodes = [Episode(t, g, self._codec.prompt.layout) for t, g in zip(tasks, groups, strict=True)]
        waiting: deque[_Half] = deque()
        for half in self._halves:
            half.start(episodes[half.slots.start : half.slots.stop])
            if half.live:
                self._pool.reset([half.slots[i] for i in half.live], [e.task for e in half.episodes])
                waiting.append(half)
        while waiting:
            half = waiting.popleft()
            self._observe(half)
            if half.live:
                self._act(params, half, key)
                waiting.append(half)
                on_turn(half.turn, sum(len(h.live) for h in self._halves))
        return episodes

    def _observe(self, half: _Half) -> None:
        """Takes in the answers of the environments and drops the episodes that ended."""
        observations = self._pool.receive([half.slots[i] for i in half.live])
        still = []
        for i, seen in zip(half.live, observations, strict=True):
            episode = half.episodes[i]
            if seen.failure is not None:
                episode.failure = seen.failure
                continue
            if episode.steps:
                step = episode.steps[-1]
                step.after, step.reward = seen.text, seen.reward
                episode.won = seen.won
                half.histories[i].append((step.before, step.action or ""))
            else:
                episode.first_observation = seen.text
            if seen.done:
                continue
            if len(episode.steps) >= self._max_steps or not self._extend(half, i, seen):
                episode.truncated = True
                continue
            still.append(i)
        half.live = still

    def _extend(self, half: _Half, i: int, seen: Observation) -> bool:
        """Puts the next prompt behind row i; False if the row has no room for it and an answer."""
        episode, prompt = half.episodes[i], self._codec.prompt
        if episode.steps:
            text = prompt.next(episode.task.instruction, half.histories[i], seen.text, seen.admissible)
        else:
            text = prompt.first(episode.task.instruction, seen.text, seen.admissible)
        ids = self._codec.prompt_ids(text)
        kept = half.rows[i] if prompt.layout == "append" else []
        if not half.sampler.fits(len(kept), len(ids)):
            return False
        half.rows[i] = kept + ids
        blank = np.zeros(0, np.int32)
        step = Step(np.array(ids, np.int32), blank, blank, None, None, (0, 0), seen.text, seen.admissible)
        episode.steps.append(step)
        return True

    def _act(self, params, half: _Half, key) -> None:
        live = set(half.live)
        rows = [half.rows[i] if i in live else [] for i in range(len(half.slots))]
        commands = None
        if self._decode == "admissible":
            offered = (half.episodes[i].steps[-1].admissible if i in live else () for i in range(len(half.slots)))
            commands = [self._codec.command_ids(names) for names in offered]
        if self._codec.prompt.layout == "stepwise":
            half.sampler.reset()
        keys = _row_keys(key, half.slots.start, half.turn, len(half.slots))
        turn = half.sampler.finish_turn(half.sampler.start_turn(params, rows, keys, commands))
        half.turn += 1
        actions = []
        for i in half.live:
            step = half.episodes[i].steps[-1]
            n = int(turn.count[i])
            step.response_ids, step.behaviour_logp = turn.ids[i, :n], turn.logp[i, :n]
            step.allowed = None if turn.allowed is None else turn.allowed[i, :n]
            answer = self._codec.decode(step.response_ids)
            parsed = parse(answer, opened=self._codec.prompt.opened, think=self._codec.prompt.think)
            step.action = parsed.action
            step.action_span = token_span(step.response_ids, self._codec.decode, parsed.start, parsed.stop)
            half.rows[i] = half.rows[i] + [int(t) for t in step.response_ids]
            actions.append(parsed.action or "")
        self._pool.step([half.slots[i] for i in half.live], actions)
