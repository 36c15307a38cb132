"""The policy against torch and transformers: the same weights, tokens and arithmetic, float32 on this machine's CPU.

Everything is measured in CPU seconds (of all threads), in turn, so that other load on the machine matters little.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from tempfile import TemporaryDirectory

import jax
import numpy as np
from ml_collections import ConfigDict

from launch.suites import Row, compare
from trca_jax.learner.loop import ppo_settings
from trca_jax.learner.state import new_state, optimizer
from trca_jax.learner.update import make_update
from trca_jax.policy.config import Qwen2Config
from trca_jax.policy.decoding import Decoding
from trca_jax.policy.hf import write_model
from trca_jax.policy.qwen2 import init_params
from trca_jax.policy.sampler import Buckets, Sampler
from trca_jax.rollout.pack import TokenBatch

SIZE = Qwen2Config(
    vocab_size=4096, hidden_size=256, intermediate_size=768, num_layers=6, num_heads=8, num_kv_heads=2, head_dim=32,
    remat="none",
)  # fmt: skip
PROMPT, NEW = 256, 32


def sampler(config: ConfigDict, quick: bool) -> list[Row]:
    """Tokens sampled from fresh prompts, against `generate`; a turn appended to kept rows, against reading all."""
    rows, repeats = (16, 2) if quick else (64, 5)
    params = init_params(SIZE, jax.random.key(0))
    prompts = np.random.default_rng(0).integers(0, SIZE.vocab_size, (rows, PROMPT)).tolist()
    never = np.zeros((1, SIZE.vocab_size), np.int8)
    keys = jax.random.split(jax.random.key(1), rows)

    def make(max_new: int) -> Sampler:
        slots = PROMPT + NEW
        return Sampler(SIZE, rows, max_new=max_new, stops=never, buckets=Buckets(chunk=(48, PROMPT), slots=(slots,)))

    fresh, short = make(NEW), make(1)
    turn = lambda one, texts: one.finish_turn(one.start_turn(params, texts, keys, None, Decoding()))  # noqa: E731

    def ours():
        fresh.reset()
        assert turn(fresh, prompts).count.sum() == rows * NEW

    def again():
        short.reset()
        turn(short, prompts)

    def append():
        turn(short, prompts)  # 47 tokens and the answer's last one, behind 208 that are kept

    kept = PROMPT - 47
    with _torch(params) as (torch, model):
        ids = torch.tensor(prompts)
        settings = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": True, "top_k": 0, "pad_token_id": 0}

        def theirs():
            with torch.no_grad():
                assert model.generate(ids, attention_mask=torch.ones_like(ids), **settings).shape[1] == PROMPT + NEW

        pairs = _measure(repeats, ours, theirs)
    appended = []
    for repeat in range(repeats + 1):  # the first one compiles
        short.reset()
        turn(short, [prompt[:kept] for prompt in prompts])
        one, other = _seconds(append), _seconds(again)
        if repeat:
            appended.append((one, other))
    return [
        _rate("sampled", rows * NEW, pairs),
        compare("append_cpu_s", f"CPU s for {PROMPT - kept + 1} tokens on {kept - 1}", appended, more_is_better=False),
    ]


def update(config: ConfigDict, quick: bool) -> list[Row]:
    """One step of the policy loss and AdamW over rows of prompt and response, micro-batches of 8, against torch."""
    rows, repeats = (16, 1) if quick else (64, 4)
    length, rng = PROMPT + NEW, np.random.default_rng(0)
    config.ppo.kl, config.ppo.entropy, config.ppo.tokens = 0.0, 0.0, "response"
    params = init_params(SIZE, jax.random.key(0))
    response = np.broadcast_to(np.arange(length) >= PROMPT, (rows, length))
    batch = TokenBatch(
        tokens=rng.integers(0, SIZE.vocab_size, (rows, length)).astype(np.int32),
        segment_ids=np.ones((rows, length), np.int8), behaviour_logp=np.where(response, -8.0, 0.0).astype(np.float32),
        response_mask=response, action_mask=response, place=np.zeros((rows, length), np.int32), allowed=None,
        transition=np.broadcast_to(np.arange(rows, dtype=np.int32)[:, None], (rows, length)),
        scored=np.broadcast_to(np.arange(PROMPT, length, dtype=np.int32), (rows, NEW)),
    )  # fmt: skip
    advantage = rng.standard_normal((rows, 1)).astype(np.float32)
    tx = optimizer(lr=1e-5, warmup=0, weight_decay=0.01, clip_norm=1.0, b2=0.99)
    state, step = new_state(params, tx), make_update(SIZE, tx, ppo_settings(config))

    def ours():
        nonlocal state
        state, metrics = step(state, batch, advantage)
        assert np.isfinite(jax.device_get(metrics)["loss"])

    with _torch(params) as (torch, model):
        adam = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01, betas=(0.9, 0.99))
        tokens, gain = torch.tensor(batch.tokens, dtype=torch.long), torch.tensor(advantage)
        micro = config.ppo.micro_rows

        def theirs():
            for at in range(0, rows, micro):
                part = tokens[at : at + micro]
                # As ours, the head sees the places before response tokens only.
                hidden = model.model(input_ids=part).last_hidden_state[:, PROMPT - 1 : -1]
                logp = torch.log_softmax(model.lm_head(hidden), dim=-1)
                logp = logp.gather(2, part[:, PROMPT:, None])[..., 0]
                ratio = torch.exp(torch.clamp(logp + 8.0, -20, 20))
                plain, clipped = -gain[at : at + micro] * ratio, -gain[at : at + micro] * ratio.clamp(0.8, 1.2)
                (torch.maximum(plain, clipped).sum() / (rows * NEW)).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            adam.zero_grad()

        pairs = _measure(repeats, ours, theirs)
    return [_rate("trained", rows * length, pairs)]


class _torch:
    """The same weights in transformers. Raises ValueError if torch is not installed."""

    def __init__(self, params):
        self._params = params

    def __enter__(self):
        try:
            torch = import_module("torch")
        except ImportError:
            raise ValueError(
                "this suite compares with torch, which is not installed: pip install -e .[parity]"
            ) from None
        from transformers import AutoModelForCausalLM

        self._folder = TemporaryDirectory()
        write_model(self._folder.name, SIZE, self._params)
        return torch, AutoModelForCausalLM.from_pretrained(self._folder.name, dtype=torch.float32)

    def __exit__(self, *_):
        self._folder.cleanup()


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _measure(repeats: int, ours: Callable[[], None], theirs: Callable[[], None]) -> list[tuple[float, float]]:
    """(ours, theirs) in turn, after one of each that warms up."""
    return [(_seconds(ours), _seconds(theirs)) for _ in range(repeats + 1)][1:]


def _rate(name: str, tokens: int, pairs: list[tuple[float, float]]) -> Row:
    rates = [(tokens / one, tokens / other) for one, other in pairs]
    return compare(f"{name}_tokens_per_cpu_s", "tokens/CPU s", rates, more_is_better=True)
