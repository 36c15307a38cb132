"""The training loop: sample, judge, assign credit, update; again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from trca_jax import credit
from trca_jax.credit import Credit, CreditBatch
from trca_jax.envs.base import Task
from trca_jax.learner.checkpoint import Checkpoints
from trca_jax.learner.critic import critic_params, make_critic_update
from trca_jax.learner.display import Display
from trca_jax.learner.interrupts import Stopped, interrupts
from trca_jax.learner.metrics import MetricsLog, rollout_metrics
from trca_jax.learner.record import open_run
from trca_jax.learner.rollouts import judged, write_rollouts
from trca_jax.learner.scores import scored
from trca_jax.learner.signals import Signals
from trca_jax.learner.state import TrainState, new_state, optimizer
from trca_jax.learner.throughput import forward_flops, peak_flops
from trca_jax.learner.update import PPOSettings, make_scorer, make_update
from trca_jax.policy.load import Policy
from trca_jax.policy.qwen2 import compute_copy, param_shardings
from trca_jax.policy.replica import Replica
from trca_jax.policy.sharding import make_mesh
from trca_jax.rollout import store
from trca_jax.rollout.collect import Collector
from trca_jax.rollout.episode import Episode
from trca_jax.rollout.pack import TokenBatch, pack
from trca_jax.rollout.processes import gather, leads, share
from trca_jax.rollout.score import ScoreError, StepScorer
from trca_jax.rollout.world import World, make_codec


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
    games: for its record, which ones they are. mesh: of all devices; every process makes the same Trainer, plays its
    share of the rollouts, and then computes what all others compute. scorer: for a method that reads its scores.
    Raises ValueError, and leaves the folder as it is, if the config cannot be used or the folder holds another run.
    """

    def __init__(
        self, config: ConfigDict, world: World, policy: Policy, tasks: Sequence[Task], folder: Path,
        games: Mapping | None = None, mesh: Mesh | None = None, scorer: StepScorer | None = None,
    ):  # fmt: skip
        self._config, self._world, self._tasks, self._folder = config, world, tasks, folder
        self._mesh = mesh = mesh or make_mesh(config.mesh)
        self._share = share(config.tasks * config.group_size)
        if config.ppo.micro_rows % (split := mesh.shape["data"] * mesh.shape["fsdp"]):
            raise ValueError(
                f"ppo.micro_rows {config.ppo.micro_rows} must be a multiple of data x fsdp = {split} of the mesh"
            )
        self._policy_config = policy.config
        self.replica = Replica(policy.config, mesh)
        params = jax.device_put(policy.params, param_shardings(policy.config, mesh))
        self._method = credit.METHODS[config.method]
        self._scorer = scorer
        if "step_score" in self._method.needs and scorer is None:
            raise ValueError(f"method {config.method!r} needs a model that scores transitions, and there is none")
        self._credit = credit.make(config.method, **config.credit[config.method])
        p = config.ppo
        common = {"warmup": p.warmup, "weight_decay": p.weight_decay, "clip_norm": p.clip_norm, "b2": p.b2}
        tx = optimizer(lr=p.lr, **common)
        self.state: TrainState = new_state(params, tx, mesh)
        places = jax.tree.map(lambda x: x.sharding, self.state)
        settings = ppo_settings(config)
        self._update = make_update(policy.config, tx, settings, places)
        self._score = make_scorer(policy.config, temperature=p.temperature, micro_rows=p.micro_rows, out=places.updates)
        codec = make_codec(config.agent, policy.tokenizer, world.benchmark)
        self.collector: Collector = world.collector(self.replica.config, codec, config.agent, p.temperature)
        self._signals = Signals(
            config.method, self._method, world.benchmark, policy.config, codec, hint=config.signals.hint,
            lead_in=config.signals.lead_in, temperature=p.temperature, max_new=config.agent.max_new,
            batch=p.minibatches * p.micro_rows,
        )  # fmt: skip
        if "token_values" in self._method.needs:
            critic_tx = optimizer(lr=p.critic_lr, **common)
            critic = new_state(critic_params(params, mesh), critic_tx, mesh)
            self.state = self.state.replace(critic=critic)
            self._critic_update = make_critic_update(
                policy.config, critic_tx, clip=p.value_clip, micro_rows=p.micro_rows,
                shardings=jax.tree.map(lambda x: x.sharding, critic),
            )  # fmt: skip
        kind = "pinned_host" if p.reference_offload else "device"
        self._reference_places = jax.tree.map(lambda x: x.sharding, params)
        parked = jax.tree.map(lambda place: place.with_memory_kind(kind), self._reference_places)
        self._reference = jax.device_put(compute_copy(policy.config, params), parked)
        rubric = world.benchmark.library.fingerprint
        if leads():
            open_run(folder, config, {**(games or {}), "rubric": rubric, "weights": policy.sha256})
        gather(b"")  # the others wait until the folder is there
        self._checkpoints = Checkpoints(folder, config.checkpoint.keep)
        self.iteration = self._checkpoints.latest() or 0
        if self.iteration:
            self.state, self._reference = self._checkpoints.restore(self.state, self._reference)
        self.log = MetricsLog(folder, keep=self.iteration, write=leads())

    def run(
        self, display: Display, evaluate: Callable[[int, Callable[[], None]], None] = lambda iteration, check: None
    ) -> None:
        """Trains up to config.iterations. evaluate(iteration, check) is called before the first, after every
        config.eval.every and after the last one; it calls check() often. Raises Stopped after Ctrl-C, once the last
        full iteration is saved; and so `ScoreError`."""
        c = self._config
        with interrupts() as (check, agree):
            try:
                while self.iteration < c.iterations:
                    if self.iteration == 0 or (c.eval.every and self.iteration % c.eval.every == 0):
                        evaluate(self.iteration, check)
                    metrics = self._step(display, check)
                    self.log.write({"kind": "train", "iteration": self.iteration, **metrics})
                    self.iteration += 1
                    display.iteration(self.log.records[-1])
                    self._check_finite()
                    if self.iteration % c.checkpoint.every == 0:
                        self.save()
                    agree()
                self.save()
                evaluate(self.iteration, check)
            except (Stopped, ScoreError):
                self.save()
                raise

    def save(self) -> None:
        """Writes a checkpoint of the iterations done."""
        self._checkpoints.save(self.iteration, self.state, self._reference)

    def sampling_params(self):
        """The policy as it is now, for `collector` (in the context `jax.set_mesh(self.replica.mesh)`)."""
        return self.replica(self.state.params)

    def _check_finite(self) -> None:
        """Raises ValueError, once everything is saved, after too many skipped steps in a row."""
        skipped = int(self.state.opt_state.notfinite_count)
        if skipped >= self._config.ppo.max_skipped:
            self.save()
            raise ValueError(
                f"the loss or its gradient was not finite in the last {skipped} steps, which were skipped; the last "
                f"good parameters are those of checkpoint {self.iteration} in {self._folder / 'checkpoints'}. Lower "
                "ppo.lr, or look for -inf log-probabilities in what is sampled"
            )

    def _check_failures(self, episodes: Sequence[Episode]) -> None:
        """Raises ValueError, once everything is saved, if too many episodes failed to run to learn from the rest."""
        reasons = Counter(episode.failure for episode in episodes if episode.failure)
        if reasons.total() > self._config.env.max_failed * len(episodes):
            self.save()
            raise ValueError(
                f"{reasons.total()} of {len(episodes)} episodes failed to run in iteration {self.iteration + 1}, more "
                f"than env.max_failed = {self._config.env.max_failed:g} of them; the commonest reason: "
                f"{reasons.most_common(1)[0][0]}. Mend it and start the same command again: the run goes on from "
                f"checkpoint {self.iteration}"
            )

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

        def on_answer(done: int, of: int) -> None:
            check()
            display.phase(f"{self._scorer.name} scores {done}/{of}")

        key = jax.random.fold_in(jax.random.key(c.seed), self.iteration)
        display.phase("sampling")
        chosen = iteration_tasks(self._tasks, c.tasks, self.iteration, c.seed)
        tasks = [task for task in chosen for _ in range(c.group_size)]
        if "curriculum" in self._world.benchmark.offers:
            tasks = self._world.benchmark.curriculum(tasks, self._tasks, self.iteration, c.seed)
        groups = [g for g in range(c.tasks) for _ in range(c.group_size)]
        episodes = self._play(tasks, groups, key, on_turn)
        self._check_failures(episodes)
        lap("collect")
        display.phase("judging")
        batch = judged(c, self._world.benchmark, self._world.judge, episodes)
        lap("judge")
        rows = pack(
            episodes, max_steps=c.env.max_steps, multiple=c.ppo.minibatches * c.ppo.micro_rows,
            malformed=c.ppo.malformed,
        )  # fmt: skip
        lap("pack")
        if self._signals.needed:
            with jax.set_mesh(self._mesh):
                batch = self._signals(self.state, self._frozen, episodes, rows, batch)
            lap("signals")
        took = {}
        if self._scorer:
            batch, took = scored(self._scorer, episodes, batch, on_answer)
            lap("score")
        assigned = jax.device_get(self._credit(batch))
        lap("credit")
        metrics = rollout_metrics(episodes, batch, assigned, self._world.judge.items) | took
        self._keep(episodes, batch)
        display.phase("update")
        with jax.set_mesh(self._mesh):
            metrics |= self._train(rows, batch, assigned)
        lap("update")
        metrics["speed"] = self._throughput(rows, seconds["update"])
        seconds["total"] = sum(seconds.values())
        rollouts = (self.iteration + 1) * len(tasks)
        return {"rollouts": rollouts, **metrics, "seconds": {k: round(v, 4) for k, v in seconds.items()}}

    def _play(self, tasks: Sequence[Task], groups: Sequence[int], key, on_turn) -> list[Episode]:
        """All episodes of an iteration, of which this process plays its share."""
        part = slice(self._share.start, self._share.stop)
        with jax.set_mesh(self.replica.mesh):
            own = self.collector(self.sampling_params(), tasks[part], groups[part], key, on_turn, first=part.start)
        if len(own) == len(tasks):
            return own
        parts = gather(store.encode(own))
        size = len(own)
        return [e for i, data in enumerate(parts) for e in store.decode(data, tasks[i * size : (i + 1) * size])]

    def _keep(self, episodes: Sequence[Episode], batch: CreditBatch) -> None:
        """Writes the rollouts of every config.checkpoint.rollouts-th iteration and of the last one into the folder."""
        every, last = self._config.checkpoint.rollouts, self.iteration + 1 == self._config.iterations
        if leads() and every and (self.iteration % every == 0 or last):
            write_rollouts(self._folder, self.iteration, episodes, batch)

    def _frozen(self):
        """The start policy, on the devices."""
        return jax.device_put(self._reference, self._reference_places)

    def _with_reference(self, rows: TokenBatch) -> TokenBatch:
        """The rows with the log-probabilities of the start policy, where the KL term needs them."""
        c = self._config.ppo
        if not c.kl:
            return rows
        frozen, parts = self._frozen(), range(c.minibatches)
        size = len(rows.tokens) // c.minibatches
        out = [self._score(frozen, jax.tree.map(lambda x: x[i * size : (i + 1) * size], rows)) for i in parts]  # noqa: B023
        return rows.replace(reference_logp=np.concatenate(jax.device_get(out)))

    def _throughput(self, rows: TokenBatch, seconds: float) -> dict[str, float]:
        """tokens_per_s: tokens of all rows, once an epoch, by the seconds of the update. mfu: share of the devices'
        peak (not on CPUs): forward and backward passes, and the reference's forward pass; no recomputation."""
        lengths, c = (rows.segment_ids > 0).sum(axis=1), self._config.ppo
        passes = forward_flops(self._policy_config, lengths, rows.response_mask.sum())
        found = {"tokens_per_s": float(lengths.sum()) * c.epochs / seconds}
        if peak := peak_flops(self._mesh.devices.flat):
            found["mfu"] = passes * (3 * c.epochs + (c.kl > 0)) / (seconds * peak)
        return found

    def _train(self, rows: TokenBatch, batch: CreditBatch, assigned: Credit) -> dict[str, float]:
        c, logged = self._config.ppo, []
        advantage = assigned.advantage if assigned.token_advantage is None else assigned.token_advantage
        rows = self._with_reference(rows)
        rng = np.random.default_rng((self._config.seed, self.iteration))
        for _ in range(c.epochs):
            for part in np.split(rng.permutation(len(rows.tokens)), c.minibatches):
                chosen = jax.tree.map(lambda x: x[part], rows)  # noqa: B023
                critic = self.state.critic
                state, metrics = self._update(self.state.replace(critic=None), chosen, advantage)
                if critic is not None:
                    critic, more = self._critic_update(critic, chosen, batch.token_values, assigned.token_returns)
                    metrics |= more
                self.state = state.replace(critic=critic)
                logged.append(metrics)
        logged = jax.device_get(logged)
        good = [m for m in logged if not m["skipped"]]
        means = {name: float(np.mean([m[name] for m in good])) if good else None for name in logged[0]}
        return means | {"skipped": float(sum(m["skipped"] for m in logged))}
