"""Discounted returns inside a rollout, and generalised advantage estimation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from trca_jax.credit.reduce import keep, masked_whiten


def discounted_returns(
    rewards_rt: Float[Array, "R T"], mask_rt: Shaped[Array, "R T"], gamma: float
) -> Float[Array, "R T"]:
    """G_t = m_t·(r_t + γ·G_{t+1}), with G_T = 0.

    rewards_rt: reward of each step. mask_rt: 0/1, the step is real. gamma: discount a step. Source: methods 2.4.
    """
    rewards_rt = keep(rewards_rt, jnp.asarray(mask_rt).astype(bool))

    def back(g_r, step):
        reward_r, mask_r = step
        g_r = mask_r * (reward_r + gamma * g_r)
        return g_r, g_r

    steps = (rewards_rt.T, jnp.asarray(mask_rt, rewards_rt.dtype).T)
    return jax.lax.scan(back, jnp.zeros_like(rewards_rt[:, 0]), steps, reverse=True)[1].T


def gae(
    rewards_bl: Float[Array, "B L"],
    values_bl: Float[Array, "B L"],
    mask_bl: Shaped[Array, "B L"],
    gamma: float,
    lam: float,
) -> tuple[Float[Array, "B L"], Float[Array, "B L"]]:
    """Whitened advantages and unwhitened returns A + V of each token.

    δ_l = r_l + γ·V′ − V_l,  A_l = δ_l + γλ·A′,  where V′ and A′ are those of the next token *inside* the mask, so that
    tokens outside it are jumped over. (The recursion that ignores the mask agrees where nothing is masked, and for
    γ = λ = 1 where the mask is a prefix of the row.)

    rewards_bl, values_bl: of each token. mask_bl: 0/1, the token was generated. gamma, lam: discounts a token.
    Source: methods 3.1, whitening methods 2.5 (the result is not masked again; the loss does that).
    """
    mask_bl = jnp.asarray(mask_bl).astype(bool)
    rewards_bl, values_bl = jnp.asarray(rewards_bl, dtype=float), jnp.asarray(values_bl, dtype=float)

    def back(later, token):
        value_next_b, advantage_next_b = later
        reward_b, value_b, mask_b = token
        advantage_b = reward_b + gamma * value_next_b - value_b + gamma * lam * advantage_next_b
        later = (jnp.where(mask_b, value_b, value_next_b), jnp.where(mask_b, advantage_b, advantage_next_b))
        return later, later[1]

    zeros_b = jnp.zeros_like(values_bl[:, 0])
    tokens = (rewards_bl.T, values_bl.T, mask_bl.T)
    advantage_bl = jax.lax.scan(back, (zeros_b, zeros_b), tokens, reverse=True)[1].T
    return masked_whiten(advantage_bl, mask_bl), advantage_bl + values_bl
