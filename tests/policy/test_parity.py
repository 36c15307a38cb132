"""The same weights in transformers: logits, log-probabilities, gradients and greedy tokens of ragged rows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tiny import TINY

from trca_jax.policy.head import token_logp
from trca_jax.policy.hf import published, read_model, write_model
from trca_jax.policy.qwen2 import Qwen2, output_embedding

LENGTHS = (14, 9, 4)  # padding stands behind the end of a row


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed: parity with transformers was not tested")


@pytest.fixture(scope="module")
def theirs(torch, folder):
    from transformers import AutoModelForCausalLM

    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert {name: list(found) for name, found in info.items() if found} == {}
    return model.eval()


@pytest.fixture(scope="module")
def batch():
    tokens = np.random.default_rng(5).integers(0, TINY.vocab_size, (3, 14))
    mask = np.arange(14) < np.array(LENGTHS)[:, None]
    return np.where(mask, tokens, 0), mask


@pytest.fixture(scope="module")
def ours(config):
    @jax.jit
    def run(params, tokens):
        positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
        return Qwen2(config).apply({"params": params}, tokens, positions)[0]

    return run


def close(name, found, expected):
    """Within 5e-5 everywhere; `pytest -s` shows by how much."""
    print(f"{name}: largest difference {np.abs(found - expected).max():.1e}, values up to {np.abs(expected).max():.1f}")
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-5)


def run_theirs(torch, model, batch):
    tokens, mask = (torch.tensor(np.asarray(x)) for x in batch)
    return model(input_ids=tokens, attention_mask=mask.long()).logits


def test_logits(torch, theirs, config, weights, batch, ours):
    hidden = np.asarray(ours(weights, batch[0]))
    logits = hidden @ np.asarray(output_embedding(config, weights)).T
    with torch.no_grad():
        expected = run_theirs(torch, theirs, batch).numpy()
    assert expected[batch[1]].std() > 0.5
    close("logits", logits[batch[1]], expected[batch[1]])


def test_rows_that_transformers_pads_on_the_left(torch, theirs, config, weights, batch, ours):
    tokens, mask = batch
    left = np.zeros_like(tokens)
    for row, ids, n in zip(left, tokens, LENGTHS, strict=True):
        row[-n:] = ids[:n]
    real = mask[:, ::-1].copy()
    with torch.no_grad():
        padded = {"input_ids": torch.tensor(left), "attention_mask": torch.tensor(real).long()}
        places = torch.tensor(np.maximum(real.cumsum(axis=1) - 1, 0))
        expected = theirs(**padded, position_ids=places).logits.numpy()
    logits = np.asarray(ours(weights, tokens)) @ np.asarray(output_embedding(config, weights)).T
    close("left-padded", np.concatenate([x[:n] for x, n in zip(logits, LENGTHS, strict=True)]), expected[real])


def test_half_precision_weights_in_several_files(torch, config, weights, batch, ours, tmp_path, monkeypatch):
    from transformers import AutoModelForCausalLM

    monkeypatch.setattr("trca_jax.policy.hf._SHARD_BYTES", 9_000)
    write_model(tmp_path, config, weights, "bfloat16")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    model, info = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True, dtype=torch.float32)
    assert {name: list(found) for name, found in info.items() if found} == {}
    read = read_model(tmp_path, config)
    logits = np.asarray(ours(read, batch[0])) @ np.asarray(output_embedding(config, read)).T
    with torch.no_grad():
        expected = run_theirs(torch, model, batch).numpy()
    close("bfloat16 files", logits[batch[1]], expected[batch[1]])


def test_log_probabilities_entropy_and_gradients(torch, theirs, config, weights, batch, ours):
    tokens, mask = batch
    weight = mask[:, 1:] * np.random.default_rng(6).uniform(0.5, 1.5, mask[:, 1:].shape).astype(np.float32)

    @jax.jit
    @functools.partial(jax.value_and_grad, has_aux=True)
    def loss(params):
        hidden = ours(params, tokens)[:, :-1]
        logp, entropy = token_logp(hidden, output_embedding(config, params), tokens[:, 1:])
        return jnp.sum(weight * (0.1 * entropy - logp)), (logp, entropy)

    (value, scores), gradient = loss(weights)
    theirs.zero_grad()
    logp = torch.log_softmax(run_theirs(torch, theirs, batch)[:, :-1], dim=-1)
    entropy = -(logp.exp() * logp).sum(-1)
    target = torch.gather(logp, 2, torch.tensor(tokens[:, 1:, None]))[..., 0]
    expected = (torch.tensor(weight) * (0.1 * entropy - target)).sum()
    expected.backward()
    for label, one, other in zip(("log-probabilities", "entropies"), scores, (target, entropy), strict=True):
        close(label, np.asarray(one)[mask[:, 1:]], other.detach().numpy()[mask[:, 1:]])
    assert float(value) == pytest.approx(expected.item(), rel=1e-6)
    named = {tensor.name: np.concatenate(list(tensor.pieces())) for tensor in published(config, gradient)}
    found = {name: parameter.grad.numpy() for name, parameter in theirs.named_parameters()}
    assert set(named) == set(found)
    for name, x in found.items():
        assert np.abs(x).max() > 1e-3, name
        close(f"gradient of {name}", named[name] / np.abs(x).max(), x / np.abs(x).max())


def test_greedy_tokens(torch, theirs, config, weights, batch, ours):
    prompt = batch[0][:, :4]  # the part that all three rows have
    with torch.no_grad():
        expected = theirs.generate(
            torch.tensor(prompt), attention_mask=torch.ones(prompt.shape), max_new_tokens=10, do_sample=False
        ).numpy()
    row = np.zeros((3, 14), int)
    row[:, :4] = prompt
    for t in range(4, 14):
        logits = np.asarray(ours(weights, row))[:, t - 1] @ np.asarray(output_embedding(config, weights)).T
        row[:, t] = logits.argmax(-1)
    np.testing.assert_array_equal(row, expected)
