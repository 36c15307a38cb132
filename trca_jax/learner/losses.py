"""Token losses of policy optimisation; all matrices are [B, L], masks are booleans."""

from __future__ import annotations

import jax
import jax.numpy as jnp

AGGREGATIONS = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")
KL_ESTIMATORS = ("k1", "k2", "k3", "abs")


def policy_loss(log_ratio, advantage, *, clip_low: float, clip_high: float, dual_clip: float | None):
    """The clipped policy loss of every token and whether it was clipped.

    ρ = exp(log_ratio); ℓ = max(−Aρ, −A·clip(ρ, 1−ε_low, 1+ε_high)); where A < 0, ℓ = min(ℓ, −A·c) (not if c is None).
    log_ratio: `token_ratio` or `sequence_ratio`; advantage: of the token's step. Source: methods 2.6.
    """
    ratio = jnp.exp(log_ratio)
    plain = -advantage * ratio
    clipped = -advantage * jnp.clip(ratio, 1 - clip_low, 1 + clip_high)
    loss = jnp.maximum(plain, clipped)
    if dual_clip is not None:
        loss = jnp.where(advantage < 0, jnp.minimum(loss, -advantage * dual_clip), loss)
    return loss, clipped > plain


def token_ratio(new, old):
    """log ρ = new − old of every token, clipped to ±20; new, old: log-probabilities."""
    return jnp.clip(new - old, -20.0, 20.0)


def sequence_ratio(new, old, mask):
    """log ρ of a row's mean token, the same at all its tokens, at most 10 (GSPO); a token's gradient is its own.

    mask: the row's tokens. Source: methods 2.6.
    """
    difference = jnp.where(mask, new - old, 0.0)
    mean = difference.sum(axis=1, keepdims=True) / jnp.maximum(mask.sum(axis=1, keepdims=True), 1)
    return jnp.minimum(new - jax.lax.stop_gradient(new) + jax.lax.stop_gradient(mean), 10.0)


def kl_estimate(new, reference, kind: str):
    """An estimate of KL(π ‖ π_ref) from each sampled token; the gradient flows through `new`, the log-probability now.

    k1: new − ref, its gradient is of mean 0 under π.  abs: |new − ref|.  k2: (new − ref)²/2, its gradient is that of
    the KL.  k3: r − log r − 1 with r = π_ref/π, log r clipped to ±20 and the result to ±10, flat where it is clipped.
    kind: one of KL_ESTIMATORS. Source: methods 2.7.
    """
    match kind:
        case "k1":
            return new - reference
        case "abs":
            return jnp.abs(new - reference)
        case "k2":
            return 0.5 * (new - reference) ** 2
        case "k3":
            log_r = jnp.clip(reference - new, -20.0, 20.0)
            return jnp.clip(jnp.exp(log_r) - log_r - 1, -10.0, 10.0)
    raise ValueError(f"KL estimator {kind!r} is unknown, expected one of {', '.join(KL_ESTIMATORS)}")


def value_loss(values, old_values, returns, clip: float):
    """½·max((V − G)², (clip(V, V_old ± ε) − G)²) of every token. Source: methods 2.8."""
    near = jnp.clip(values, old_values - clip, old_values + clip)
    return 0.5 * jnp.maximum((values - returns) ** 2, (near - returns) ** 2)


def counts(mask):
    """What `token_weights` needs to know of a whole batch: its tokens, and its rows that have any."""
    return jnp.maximum(mask.sum(), 1), jnp.maximum(mask.any(axis=1).sum(), 1)


def token_weights(mask, mode: str, tokens, rows):
    """Weights w [B, L] that make Σ w·ℓ the mean of a token matrix ℓ, 0 outside the mask.

    token-mean: 1/tokens.  seq-mean-token-sum: 1/rows.  seq-mean-token-mean: 1/(rows · the row's own tokens).
    seq-mean-token-sum-norm: 1/L. tokens, rows: `counts` of the whole batch, of which mask may be a part, so the sums
    over its parts add up. Rows without a token count nowhere. Source: methods 2.6.
    """
    match mode:
        case "token-mean":
            weight = 1 / tokens
        case "seq-mean-token-sum":
            weight = 1 / rows
        case "seq-mean-token-mean":
            weight = 1 / (rows * jnp.maximum(mask.sum(axis=1, keepdims=True), 1))
        case "seq-mean-token-sum-norm":
            weight = 1 / mask.shape[1]
        case _:
            raise ValueError(f"loss aggregation {mode!r} is unknown, expected one of {', '.join(AGGREGATIONS)}")
    return jnp.where(mask, weight, 0.0)


def weighted_sum(x, weights):
    """Σ w·x over the tokens with a weight; what stands elsewhere (NaN included) never enters."""
    return jnp.sum(weights * jnp.where(weights > 0, x, 0.0))
