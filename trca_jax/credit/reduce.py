"""Masked and segment statistics: the only place that knows masks, ddof and eps."""

from __future__ import annotations

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

# A float32 group of equal values can have a mean one ulp away, and one ulp / eps is far from 0 (methods 2.3).
_FLAT = 1e-6


def step_mask(length: Int[Array, "R"], steps: int) -> Bool[Array, "R T"]:
    """True at the real steps: t < length[r]."""
    return jnp.arange(steps) < jnp.asarray(length)[:, None]


def keep(x: Shaped[Array, "..."], mask: Bool[Array, "..."]) -> Float[Array, "..."]:
    """x as floats where the mask holds, 0 elsewhere (also where x is NaN there)."""
    return jnp.where(mask, jnp.asarray(x, dtype=float), 0.0)


def masked_mean(x: Float[Array, "..."], mask: Bool[Array, "..."], axis: int | None = None) -> Float[Array, "..."]:
    """Σ m·x / Σ m along an axis (all axes if None); 0 where nothing is masked in."""
    return keep(x, mask).sum(axis) / jnp.maximum(mask.sum(axis), 1)


def masked_whiten(x: Float[Array, "..."], mask: Shaped[Array, "..."]) -> Float[Array, "..."]:
    """Whiten by the masked mean and the masked unbiased variance; entries outside the mask are shifted and scaled too.

    n = Σm,  μ = Σ m·x/(n+1e-8),  v = Σ m·(x−μ)²/(n+1e-8)·n/(n−1),  y = (x−μ)/√(v+1e-8);  y = x−μ where n ≤ 1.
    Equal values inside the mask (to 1e-6, relative above 1) give exactly 0. Source: methods 2.5.
    """
    mask = jnp.asarray(mask).astype(bool)
    n = mask.sum().astype(x.dtype)
    mean = keep(x, mask).sum() / (n + 1e-8)
    spread = jnp.where(mask, x, -jnp.inf).max() - jnp.where(mask, x, jnp.inf).min()
    flat = (n > 1) & (spread <= _FLAT * jnp.maximum(1.0, jnp.abs(mean)))
    centred = jnp.where(flat & mask, 0.0, x - mean)
    variance = keep(centred**2, mask).sum() / (n + 1e-8) * n / jnp.maximum(n - 1, 1)
    return jnp.where(n > 1, centred * jax.lax.rsqrt(variance + 1e-8), centred)


class _Groups(NamedTuple):
    """deviation x − mean in the shape of x; bin (M,) of each id. Per bin (S+1,): count, squares = Σ(x−mean)², flat.

    flat: all values that count are equal, to _FLAT. An element that differs by no more than that from the mean of a
    flat group deviates by exactly 0.
    """

    deviation: Float[Array, "M K"]
    bin: Int[Array, "M"]
    count: Float[Array, "S"]
    squares: Float[Array, "S"]
    flat: Bool[Array, "S"]


def _group(x, ids, weights, num_segments: int, singleton: str = "zero") -> _Groups:
    # Elements that share an id by their place, (M, K), are summed before they are scattered: the scatter costs most.
    ids = jnp.asarray(ids).ravel()
    x, weights = (jnp.reshape(y, (ids.size, -1)) for y in (x, weights))
    inside = (ids >= 0) & (ids < num_segments)
    bin_ = jnp.where(inside, ids, num_segments)
    counted = weights.astype(bool) & inside[:, None]
    value = keep(x, inside[:, None])

    sums = jnp.stack([counted.sum(axis=1), keep(value, counted).sum(axis=1)], axis=-1)
    count, total = jax.ops.segment_sum(sums, bin_, num_segments + 1).T
    mean = total / jnp.maximum(count, 1)
    deviation = value - mean[bin_][:, None]
    apart = keep(deviation, counted)
    # A second pass, since E[x²]−mean² cancels in float32.
    squares = jax.ops.segment_sum((apart**2).sum(axis=1), bin_, num_segments + 1)
    widest = jax.ops.segment_max(jnp.abs(apart).max(axis=1), bin_, num_segments + 1)
    rounding = _FLAT * jnp.maximum(1.0, jnp.abs(mean))
    flat = widest <= rounding
    equal = flat[bin_][:, None] & (jnp.abs(deviation) <= rounding[bin_][:, None])
    if singleton == "raw":
        single = count == 1
        deviation = jnp.where(single[bin_][:, None], value, deviation)
        flat, equal = flat & ~single, equal & ~single[bin_][:, None]
    return _Groups(jnp.where(inside[:, None] & ~equal, deviation, 0), bin_, count, squares, flat)


def group_normalise(
    x: Float[Array, "..."],
    ids: Int[Array, "..."],
    weights: Shaped[Array, "..."],
    num_segments: int,
    *,
    ddof: int,
    eps: float,
    use_std: bool,
    singleton: Literal["zero", "raw"] = "zero",
    floor: float = 0.0,
) -> Float[Array, "..."]:
    """Standardise every element by the statistics of its group: y = (x − mean_s) / (std_s + eps).

    x, weights: one shape. ids: group of the element, or of all elements along the axes that it lacks (the last ones of
    x); an id outside 0..num_segments-1 (rubbish bin) gives 0. weights: 0/1, the element counts in the statistics
    (elements that do not count are standardised all the same).
    ddof, floor: std_s = √(Σ_s (x−mean)²/max(n_s−ddof, 1) + floor). use_std: False leaves out the division.
    singleton: a group that counts one element gives 0, or its raw value over 1 + eps (mean 0, std 1).
    A group whose values are all equal (to 1e-6, relative above 1) gives exactly 0; with use_std so do its elements that
    do not count and differ, which the public code divides by eps alone. O(elements). Source: methods 2.3.
    """
    g = _group(x, ids, weights, num_segments, singleton)
    if not use_std:
        return g.deviation.reshape(jnp.shape(x))
    std = jnp.sqrt(g.squares / jnp.maximum(g.count - ddof, 1) + floor)
    if singleton == "raw":
        std = jnp.where(g.count == 1, 1, std)
    scale = jnp.where(g.flat, 0, 1 / (std + eps))[g.bin]
    return (g.deviation * scale[:, None]).reshape(jnp.shape(x))


def leave_one_out(
    x: Float[Array, "..."],
    ids: Int[Array, "..."],
    weights: Shaped[Array, "..."],
    num_segments: int,
    singleton: Literal["zero", "raw"] = "raw",
) -> Float[Array, "..."]:
    """Distance to the mean of the others: y = (x − mean_s)·n_s/(n_s−1); a group of one gives x itself, or zero.

    Arguments and the exact 0 of equal values as in `group_normalise` without std. Source: methods 3.2.
    """
    g = _group(x, ids, weights, num_segments, singleton)
    scale = jnp.where(g.count == 1, 1, g.count / jnp.maximum(g.count - 1, 1))
    return (g.deviation * scale[g.bin][:, None]).reshape(jnp.shape(x))


def group_sizes(ids: Int[Array, "..."], weights: Shaped[Array, "..."], num_segments: int) -> Float[Array, "S"]:
    """How many elements of each group 0..num_segments-1 count."""
    ids = jnp.where(jnp.asarray(weights).astype(bool), ids, num_segments).ravel()
    return jax.ops.segment_sum(jnp.ones(ids.shape), ids, num_segments + 1)[:-1]
