"""Token losses of policy optimisation; all matrices are [B, L], masks are booleans."""

from __future__ import annotations

import jax.numpy as jnp


def policy_loss(new, old, advantage, *, clip: float, dual_clip: float):
    """The clipped policy loss of every token and whether it was clipped.

    ρ = exp(new − old); ℓ = max(−Aρ, −A·clip(ρ, 1−ε, 1+ε)); where A < 0, ℓ = min(ℓ, −A·c).
    new, old: log-probabilities; advantage: of the token's step. clip ε > 0, dual_clip c > 1. Source: methods 2.6.
    """
    ratio = jnp.exp(jnp.clip(new - old, -20.0, 20.0))
    plain = -advantage * ratio
    clipped = -advantage * jnp.clip(ratio, 1 - clip, 1 + clip)
    loss = jnp.maximum(plain, clipped)
    return jnp.where(advantage < 0, jnp.minimum(loss, -advantage * dual_clip), loss), clipped > plain


def kl_k3(new, reference):
    """The k3 estimate of KL(π ‖ π_ref) of every token, r − log r − 1 with r = π_ref / π, clipped to ±10.

    Its gradient flows through `new` and vanishes where the estimate is clipped. Source: methods 2.7.
    """
    log_r = jnp.clip(reference - new, -20.0, 20.0)
    return jnp.clip(jnp.exp(log_r) - log_r - 1, -10.0, 10.0)


def masked_sum(x, mask):
    """Σ x over the tokens of the mask; what stands elsewhere (NaN included) never enters."""
    return jnp.sum(jnp.where(mask, x, 0.0))
