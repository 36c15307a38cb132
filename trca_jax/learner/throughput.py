"""How much arithmetic an update is, and what share of the chip's peak that makes."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from trca_jax.policy.config import Qwen2Config

# Dense bfloat16 peak in FLOP/s, by the beginning of the device's name (data sheets, without sparsity).
_PEAK = {
    "NVIDIA A100": 312e12,
    "NVIDIA H100": 989e12,
    "NVIDIA H200": 989e12,
    "NVIDIA B200": 2250e12,
    "NVIDIA L40S": 362e12,
}


def forward_flops(config: Qwen2Config, lengths: Sequence[int], scored: int) -> float:
    """Multiplications and additions of one forward pass over rows of these many tokens, the head at `scored` of them.

    Σ_n 2·(layer parameters)·n + 4·(layers)·(heads·head size)·n²/2 (causal attention) + 2·D·V·scored.
    """
    c = config
    width = c.num_heads * c.head_dim
    attention = 2 * c.hidden_size * width + 2 * c.hidden_size * c.num_kv_heads * c.head_dim
    layer = attention + 3 * c.hidden_size * c.intermediate_size
    n = np.asarray(lengths, np.float64)
    body = c.num_layers * (2 * layer * n + 2 * width * n * n).sum()
    return float(body + 2 * c.hidden_size * c.vocab_size * scored)


def peak_flops(devices: Sequence[jax.Device]) -> float | None:
    """FLOP/s of all devices together in bfloat16; None where the peak is not known (CPUs)."""
    peak = next((p for name, p in _PEAK.items() if devices[0].device_kind.startswith(name)), None)
    return None if peak is None else peak * len(devices)
