"""GraphGPO: every step by how much nearer its next state lies to a success that some rollout of the task reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from trca_jax.credit.diagnostics import diagnose_contexts
from trca_jax.credit.outcome import penalty, row_scores, task_ids, unit_weights
from trca_jax.credit.reduce import group_normalise, keep, masked_mean, step_mask
from trca_jax.credit.settings import check_choice, check_number
from trca_jax.credit.types import Credit, CreditBatch, outcome_credit


@dataclass(frozen=True, kw_only=True)
class GraphGPOSettings:
    """gamma: discount an edge (0.1 ALFWorld, 0.2 WebShop). scale: return of a step that ends in success.
    normalize_distance: compare the distances after and before the step, instead of the one after it alone.
    step_weight, episode_weight: of A_S and A_E. norm, stat_unit, invalid_penalty, eps: as in `GiGPOSettings`."""

    gamma: float = 0.1
    scale: float = 10.0
    normalize_distance: bool = False
    step_weight: float = 1.0
    episode_weight: float = 1.0
    norm: Literal["mean_std", "mean"] = "mean_std"
    stat_unit: Literal["row", "trajectory"] = "row"
    invalid_penalty: float = 0.0
    eps: float = 1e-6

    def __post_init__(self):
        check_number("gamma", self.gamma, 1e-6, 1)
        for name in ("scale", "step_weight", "episode_weight", "invalid_penalty", "eps"):
            check_number(name, getattr(self, name))
        check_choice("normalize_distance", self.normalize_distance, (True, False))
        check_choice("norm", self.norm, ("mean_std", "mean"))
        check_choice("stat_unit", self.stat_unit, ("row", "trajectory"))


def distances(
    here: Int[Array, "E"], there: Int[Array, "E"], arrives: Bool[Array, "E"], live: Bool[Array, "E"], nodes: int
) -> Float[Array, "S"]:
    """Fewest edges from every node to a success; inf where none can be reached.

    E directed edges here → there between ids 0..nodes-1. arrives: the edge leads to success instead of `there`.
    live: the edge exists. d[here] = min(1 + d[there]), repeated until nothing changes: as often as the longest of the
    shortest paths has edges.
    """
    source = jnp.where(live, here, nodes)

    def relax(state):
        d, _ = state
        through = 1 + jnp.where(arrives, 0.0, d[there])
        new = jnp.minimum(d, jax.ops.segment_min(through, source, nodes + 1)[:nodes])
        return new, (new < d).any()

    # Made from the data, so that under shard_map it varies over the mesh as the loop's result does.
    start = jnp.full((nodes,), jnp.inf) + 0.0 * live.sum()
    return jax.lax.while_loop(lambda state: state[1], relax, (start, live.any()))[0]


def graphgpo(batch: CreditBatch, settings: GraphGPOSettings) -> Credit:
    """A = w_S·A_S + w_E·A_E; A_S standardises scale·γ^d[next] over the steps of one context (or γ^(d[next] − d + 1)).

    d counts steps to success along the states that the rollouts of the task visited; the last step of a rollout of
    positive total reward arrives. A node without a path has d = 1 + the largest finite distance of its task, so a task
    without success gives equal returns and A_S = 0. A_E is the advantage of GRPO; a single step: A_E raw, A_S 0.
    batch: see `CreditBatch`; reads r_env, length, group, context, next_context and valid. Source: methods 5.
    """
    rollouts, steps = batch.r_env.shape
    mask_rt = step_mask(batch.length, steps)
    won_r = keep(batch.r_env, mask_rt).sum(axis=1) > 0
    arrives_rt = won_r[:, None] & (jnp.arange(steps) == jnp.asarray(batch.length)[:, None] - 1)
    nodes = rollouts * (steps + 1)
    here, there = (jnp.where(mask_rt, ids, 0).ravel() for ids in (batch.context, batch.next_context))
    d = distances(here, there, arrives_rt.ravel(), mask_rt.ravel(), nodes)

    here_rt = d[here].reshape(mask_rt.shape)
    there_rt = jnp.where(arrives_rt, 0.0, d[there].reshape(mask_rt.shape))
    finite_rt = [jnp.where(mask_rt & jnp.isfinite(x), x, 0.0) for x in (here_rt, there_rt)]
    task_r = task_ids(batch, mask_rt)
    bin_r = jnp.where(mask_rt[:, 0], task_r, rollouts)
    farthest = jax.ops.segment_max(jnp.maximum(*finite_rt).max(axis=1), bin_r, rollouts + 1)
    lost_rt = 1 + farthest[bin_r][:, None]
    here_rt, there_rt = (jnp.where(jnp.isfinite(x), x, lost_rt) for x in (here_rt, there_rt))
    exponent_rt = there_rt - here_rt + 1 if settings.normalize_distance else there_rt
    returns_rt = keep(settings.scale * settings.gamma**exponent_rt, mask_rt)
    returns_rt = returns_rt - penalty(batch, mask_rt, settings.invalid_penalty)

    rules = {"ddof": 1, "eps": settings.eps, "use_std": settings.norm == "mean_std"}
    context_rt = jnp.where(mask_rt, batch.context, -1)
    step_rt = group_normalise(returns_rt, context_rt, mask_rt, rollouts * steps, **rules)
    scores_rt = row_scores(batch, settings.invalid_penalty)
    weights_rt = unit_weights(mask_rt, settings.stat_unit)
    episode_rt = group_normalise(scores_rt, task_r, weights_rt, rollouts, singleton="raw", **rules)
    episode_rt = keep(episode_rt, mask_rt)

    advantage_rt = settings.step_weight * step_rt + settings.episode_weight * episode_rt
    episode_r = masked_mean(episode_rt, mask_rt, axis=1)
    return outcome_credit(advantage_rt, episode_r, returns_rt, diagnose_contexts(batch), step=step_rt)
