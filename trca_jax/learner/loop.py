"""The training loop: sample, judge, assign credit, update; again."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import jax
import numpy as np
from ml_collections import ConfigDict

from trca_jax import credit
from trca_jax.credit import Credit, CreditBatch
from trca_jax.envs.base import Task
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.critic import critic_params, make_critic_update
from trca_jax.learner.display import Display
from trca_jax.learner.metrics import MetricsLog, rollout_metrics
from trca_jax.learner.record import open_run
from trca_jax.learner.signals import Signals
from trca_jax.learner.state import TrainState, new_state, optimizer
from trca_jax.learner.update import PPOSettings, make_update
from trca_jax.policy.load import Policy
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.judge import credit_batch
from trca_jax.rollout.pack import TokenBatch, pack
from trca_jax.rollout.world import World, make_codec


class Stopped(Exception):
    """The user asked to stop; everything up to the last full iteration is saved."""


def iteration_tasks(tasks: Sequence[Task], count: int, iteration: int, seed: int) -> list[Task]:
    """The tasks of an iteration: consecutive parts of one shuffled pass over all tasks after another.

    A function of its arguments alone, so a resumed run goes on where it was, and methods that share a seed see the
    same tasks.
    """
    chosen = []
    for place in range(iteration * count, (iteration + 1) * count):
        epoch, index = divmod(place, len(tasks))
        chosen.append(tasks[np.random.default_rng((seed, epoch)).permutation(len(tasks))[index]])
    return chosen


def ppo_settings(config: ConfigDict) -> PPOSettings:
    """The ppo section of the config. Raises ValueError for a value out of range."""
    p = config.ppo
    tokens = credit.METHODS[config.method].tokens if p.tokens == "method" else p.tokens
    return PPOSettings(
        clip=p.clip, clip_high=p.clip_high or None, dual_clip=p.dual_clip, ratio=p.ratio, aggregation=p.aggregation,
        kl=p.kl, kl_kind=p.kl_kind, entropy=p.entropy, temperature=p.temperature, micro_rows=p.micro_rows,
        tokens=tokens,
    )  # fmt: skip


class Trainer:
    """One run of the config in a world, continued if the folder holds it already.

    policy: where it starts, which is also the frozen reference of the KL term. tasks: to train on. folder: of the run.
    games: for its record, which ones they are. Raises ValueError, and leaves the folder as it is, if the config
    cannot be used or the folder holds another run.
    """

    def __init__(
        self, config: ConfigDict, world: World, policy: Policy, tasks: Sequence[Task], folder: Path,
        games: Mapping | None = None,
    ):  # fmt: skip
        self._config, self._world, self._tasks = config, world, tasks
        self._method = credit.METHODS[config.method]
        self._credit = credit.make(config.method, **config.credit[config.method])
        p = config.ppo
        common = {"warmup": p.warmup, "weight_decay": p.weight_decay, "clip_norm": p.clip_norm, "b2": p.b2}
        tx = optimizer(lr=p.lr, **common)
        self._update = make_update(policy.config, tx, ppo_settings(config))
        codec = make_codec(config.agent, policy.tokenizer)
        self.collector: Collector = world.collector(policy.config, codec, config.agent, p.temperature)
        self._signals = Signals(
            config.method, self._method, world.benchmark, policy.config, codec, hint=config.signals.hint,
            lead_in=config.signals.lead_in, temperature=p.temperature, max_new=config.agent.max_new,
            batch=p.minibatches * p.micro_rows,
        )  # fmt: skip
        self.state: TrainState = new_state(policy.params, tx)
        if "token_values" in self._method.needs:
            critic_tx = optimizer(lr=p.critic_lr, **common)
            critic = new_state(critic_params(policy.params), critic_tx)
            self.state = self.state.replace(critic=critic)
            self._critic_update = make_critic_update(
                policy.config, critic_tx, clip=p.value_clip, micro_rows=p.micro_rows
            )
        self._reference = jax.tree.map(jax.numpy.asarray, policy.params)
        rubric = world.benchmark.library.fingerprint
        open_run(folder, config, {**(games or {}), "rubric": rubric, "weights": policy.sha256})
        self._checkpoints = Checkpoints(folder, config.checkpoint.keep)
        self.iteration = self._checkpoints.latest() or 0
        if self.iteration:
            self.state, self._reference = self._checkpoints.restore(self.state, self._reference)
        self.log = MetricsLog(folder, keep=self.iteration)

    def run(
        self, display: Display, evaluate: Callable[[int, Callable[[], None]], None] = lambda iteration, check: None
    ) -> None:
        """Trains up to config.iterations. evaluate(iteration, check) is called before the first, after every
        config.eval.every and after the last one; it calls check() often. Raises Stopped after Ctrl-C, once the last
        full iteration is saved."""
        c = self._config
        with _interrupts() as check:
            try:
                while self.iteration < c.iterations:
                    if self.iteration == 0 or (c.eval.every and self.iteration % c.eval.every == 0):
                        evaluate(self.iteration, check)
                    metrics = self._step(display, check)
                    self.log.write({"kind": "train", "iteration": self.iteration, **metrics})
                    self.iteration += 1
                    display.iteration(self.log.records[-1])
                    if self.iteration % c.checkpoint.every == 0:
                        self.save()
                    check()
                self.save()
                evaluate(self.iteration, check)
            except Stopped:
                self.save()
                raise

    def save(self) -> None:
        """Writes a checkpoint of the iterations done."""
        self._checkpoints.save(self.iteration, self.state, self._reference)

    def close(self) -> None:
        self._checkpoints.close()
        self.log.close()

    def _step(self, display: Display, check: Callable[[], None]) -> dict:
        c, seconds, clock = self._config, {}, time.perf_counter()

        def lap(name: str) -> None:
            nonlocal clock
            seconds[name], clock = time.perf_counter() - clock, time.perf_counter()

        def on_turn(turn: int, live: int) -> None:
            check()
            display.turn(turn, live)

        key = jax.random.fold_in(jax.random.key(c.seed), self.iteration)
        display.phase("sampling")
        chosen = iteration_tasks(self._tasks, c.tasks, self.iteration, c.seed)
        tasks = [task for task in chosen for _ in range(c.group_size)]
        groups = [g for g in range(c.tasks) for _ in range(c.group_size)]
        episodes = self.collector(self.state.params, tasks, groups, key, on_turn)
        lap("collect")
        display.phase("judging")
        batch = credit_batch(
            episodes,
            self._world.benchmark,
            self._world.judge,
            max_steps=c.env.max_steps,
            context=self._method.context,
            similarity=c.credit[c.method].get("similarity", 0.0),
        )
        lap("judge")
        rows = pack(
            episodes, max_steps=c.env.max_steps, multiple=c.ppo.minibatches * c.ppo.micro_rows,
            malformed=c.ppo.malformed,
        )  # fmt: skip
        lap("pack")
        if self._signals.needed:
            batch = self._signals(self.state, self._reference, episodes, rows, batch)
            lap("signals")
        assigned = jax.device_get(self._credit(batch))
        lap("credit")
        metrics = rollout_metrics(episodes, batch, assigned, self._world.judge.items)
        display.phase("update")
        metrics |= self._train(rows, batch, assigned)
        lap("update")
        seconds["total"] = sum(seconds.values())
        rollouts = (self.iteration + 1) * len(tasks)
        return {"rollouts": rollouts, **metrics, "seconds": {k: round(v, 4) for k, v in seconds.items()}}

    def _train(self, rows: TokenBatch, batch: CreditBatch, assigned: Credit) -> dict[str, float]:
        c, logged = self._config.ppo, []
        advantage = assigned.advantage if assigned.token_advantage is None else assigned.token_advantage
        rng = np.random.default_rng((self._config.seed, self.iteration))
        for _ in range(c.epochs):
            for part in np.split(rng.permutation(len(rows.tokens)), c.minibatches):
                chosen = jax.tree.map(lambda x: x[part], rows)  # noqa: B023
                critic = self.state.critic
                state, metrics = self._update(self.state.replace(critic=None), self._reference, chosen, advantage)
                if critic is not None:
                    critic, more = self._critic_update(critic, chosen, batch.token_values, assigned.token_returns)
                    metrics |= more
                self.state = state.replace(critic=critic)
                logged.append(metrics)
        logged = jax.device_get(logged)
        return {name: float(np.mean([m[name] for m in logged])) for name in logged[0]}


@contextmanager
def _interrupts():
    """Turns the first Ctrl-C into a `Stopped` at the next call of the yielded check; the second one acts at once."""
    asked = False

    def handler(signum, frame):
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def check():
        if asked:
            raise Stopped

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
