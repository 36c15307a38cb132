"""The compiled update: what its gradient is, which tokens it reads, and that batch shapes change nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tiny import TINY, random_params

from trca_jax.learner.state import new_state, optimizer
from trca_jax.learner.update import PPOSettings, batch_logp, make_scorer, make_update
from trca_jax.policy.head import pack_allowed
from trca_jax.rollout.pack import TokenBatch

B, L, R, T = 8, 16, 4, 5
SGD = optax.sgd(1.0)  # the change of the parameters is the negative gradient


@pytest.fixture(scope="module")
def params():
    return random_params(TINY)


@pytest.fixture(scope="module")
def reference():
    return random_params(TINY, seed=1)


@pytest.fixture(scope="module")
def logp():
    run = jax.jit(lambda params, batch, temperature: batch_logp(TINY, params, batch, temperature))
    return lambda params, batch, temperature=1.0: run(params, batch, temperature)


@pytest.fixture(scope="module")
def batch(params, logp):
    """Rows with 1-4 action tokens each inside longer responses, behind prompts, before padding; sampled by `params`."""
    rng = np.random.default_rng(0)
    segment, response, action = np.zeros((3, B, L), int)
    for b in range(B):
        end = 9 + b % 6
        segment[b, :end] = 1
        response[b, 4:end] = 1
        action[b, 5 : 6 + b % 4] = 1
    batch = TokenBatch(
        tokens=rng.integers(0, TINY.vocab_size, (B, L)).astype(np.int32),
        segment_ids=segment.astype(np.int8),
        behaviour_logp=np.zeros((B, L), np.float32),
        response_mask=response.astype(bool),
        action_mask=action.astype(bool),
        transition=np.where(response, rng.integers(0, R * T, (B, 1)), 0).astype(np.int32),
        place=np.where(response, np.maximum(np.arange(L) - 4, 0), 0).astype(np.int32),
        allowed=None,
    )
    return batch.replace(behaviour_logp=np.where(response, logp(params, batch)[0], 0.0))


@pytest.fixture(scope="module")
def advantage():
    return np.random.default_rng(1).standard_normal((R, T)).astype(np.float32)


@pytest.fixture(scope="module")
def step(params, reference, logp):
    """step(batch, advantage, **settings) -> (gradient, metrics); every setting compiles once."""
    compiled = {}

    def run(batch, advantage, at=params, against=reference, **settings):
        settings = {"kl": 0.0, "entropy": 0.0, "micro_rows": 4} | settings
        key = tuple(sorted(settings.items()))
        compiled.setdefault(key, make_update(TINY, SGD, PPOSettings(**settings)))
        frozen = logp(against, batch, settings.get("temperature", 1.0))[0]
        state, metrics = compiled[key](new_state(at, SGD), batch.replace(reference_logp=frozen), advantage)
        return jax.tree.map(lambda a, b: np.asarray(a - b), at, state.params), jax.device_get(metrics)

    return run


def close(a, b, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), a, b)


def size(gradient):
    return max(np.abs(x).max() for x in jax.tree.leaves(gradient))


def test_on_the_sampling_policy_the_gradient_is_that_of_weighted_log_likelihood(step, params, batch, advantage):
    """The ratio is 1: nothing is clipped, and the loss is −Σ A log π over the action tokens, by their number."""
    gradient, metrics = step(batch, advantage)
    weight = np.where(batch.action_mask, advantage.reshape(-1)[batch.transition], 0.0)
    count = batch.action_mask.sum()

    @jax.jit
    @jax.grad
    def plain(params):
        return -jnp.sum(weight * batch_logp(TINY, params, batch, 1.0)[0]) / count

    close(gradient, plain(params), rtol=5e-5, atol=2e-6)
    assert size(gradient) > 0.01
    assert metrics["policy_loss"] == pytest.approx(-weight.sum() / count, abs=1e-5)
    assert "kl" not in metrics  # nobody asked, so nothing is said
    assert metrics["clip_fraction"] == 0 and metrics["approx_kl"] == pytest.approx(0, abs=1e-4)
    assert metrics["grad_norm"] == pytest.approx(float(optax.tree.norm(gradient)), rel=1e-4)


def test_the_split_into_micro_batches_changes_nothing(step, batch, advantage):
    """Rows have 1-4 action tokens: means of each part would weigh them otherwise."""
    settings = {"kl": 0.3, "entropy": 0.05}
    gradient, metrics = step(batch, advantage, **settings)
    other, more = step(batch, advantage, micro_rows=1, **settings)
    close(other, gradient, atol=1e-5)
    close(more, metrics, rtol=1e-4, atol=1e-5)


def test_padding_rows_and_padding_tokens_change_nothing(step, batch, advantage):
    settings = {"kl": 0.3, "entropy": 0.05}
    gradient, metrics = step(batch, advantage, **settings)
    larger = jax.tree.map(lambda x: np.pad(x, ((0, 4), (0, 8))), batch)
    noise = batch.replace(tokens=np.where(batch.segment_ids > 0, batch.tokens, 7).astype(np.int32))
    for padded in (larger, noise):
        other, more = step(padded, advantage, **settings)
        close(other, gradient, atol=2e-6)
        close(more, metrics, rtol=1e-5, atol=1e-6)


def test_observations_carry_no_advantage(step, batch, advantage):
    """Lesson of inverted masks: whatever prompt and padding tokens point to, the gradient is bit by bit the same."""
    gradient, _ = step(batch, advantage)
    elsewhere = np.where(batch.response_mask, batch.transition, 7).astype(np.int32)
    wild = np.where(batch.response_mask, batch.behaviour_logp, -3.0).astype(np.float32)
    other, _ = step(batch.replace(transition=elsewhere, behaviour_logp=wild), advantage)
    close(other, gradient, atol=0, rtol=0)
    unused = sorted(set(range(R * T)) - set(batch.transition[batch.response_mask].tolist()))
    changed = advantage.copy()
    changed.reshape(-1)[unused] = 99.0
    assert unused
    close(step(batch, changed)[0], gradient, atol=0, rtol=0)


def test_only_the_tokens_of_the_setting_carry_the_advantage(step, batch, advantage):
    """The mask of the other setting may be anything."""
    action, _ = step(batch, advantage)
    response, _ = step(batch, advantage, tokens="response")
    narrow = batch.replace(response_mask=batch.action_mask)
    close(step(narrow, advantage)[0], action, atol=1e-6)
    close(step(narrow, advantage, tokens="response")[0], action, atol=1e-6)
    wide = batch.replace(action_mask=batch.response_mask)
    close(step(wide, advantage)[0], response, atol=1e-6)
    assert max(np.abs(a - b).max() for a, b in zip(*map(jax.tree.leaves, (action, response)), strict=True)) > 1e-3


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_good_action_becomes_more_likely_and_a_bad_one_less(step, logp, params, batch, sign):
    before = logp(params, batch)[0]
    gradient, _ = step(batch, np.full((R, T), sign, np.float32))
    moved = jax.tree.map(lambda p, g: p - 0.01 * g / size(gradient), params, gradient)
    change = np.asarray(logp(moved, batch)[0] - before)[batch.action_mask]
    assert sign * change.mean() > 1e-3


def test_the_loss_stops_pushing_outside_the_clip_range(step, batch):
    """Sampled at half today's probability, so the ratio is 2: good actions are clipped, bad ones are not."""
    stale = batch.replace(behaviour_logp=batch.behaviour_logp - np.float32(np.log(2)))
    gradient, metrics = step(stale, np.ones((R, T), np.float32))
    assert size(gradient) == 0 and metrics["clip_fraction"] == pytest.approx(1)
    assert metrics["approx_kl"] == pytest.approx(-np.log(2), abs=1e-4)
    gradient, metrics = step(stale, -np.ones((R, T), np.float32))
    assert size(gradient) > 0.01 and metrics["clip_fraction"] == 0
    assert metrics["policy_loss"] == pytest.approx(2.0, rel=1e-4)


def test_the_kl_term_pulls_towards_the_reference_and_rests_there(step, params, reference, batch):
    zero = np.zeros((R, T), np.float32)
    gradient, metrics = step(batch, zero, kl=1.0)
    moved = jax.tree.map(lambda p, g: p - 0.01 * g / size(gradient), params, gradient)
    assert metrics["kl"] > 0.1
    assert step(batch, zero, kl=1.0, at=moved)[1]["kl"] < metrics["kl"] - 1e-3
    gradient, metrics = step(batch, zero, kl=1.0, against=params)
    assert size(gradient) < 1e-6 and metrics["kl"] == pytest.approx(0, abs=1e-6)


def test_the_entropy_bonus_raises_the_entropy(step, params, batch):
    zero = np.zeros((R, T), np.float32)
    gradient, metrics = step(batch, zero, entropy=1.0)
    moved = jax.tree.map(lambda p, g: p - 0.01 * g / size(gradient), params, gradient)
    assert step(batch, zero, entropy=1.0, at=moved)[1]["entropy"] > metrics["entropy"] + 1e-3


def test_masks_of_allowed_tokens_and_temperature_are_those_of_sampling(step, logp, params, batch, advantage):
    """Prompt tokens are not among the allowed ones here; their log-probability of −inf must not reach the gradient."""
    allowed = np.random.default_rng(2).random((B, L, TINY.vocab_size)) < 0.3
    np.put_along_axis(allowed, batch.tokens[..., None], batch.response_mask[..., None], axis=2)
    constrained = batch.replace(allowed=np.asarray(pack_allowed(jnp.asarray(allowed))))
    found, entropy = logp(params, constrained, 0.5)
    assert np.isneginf(found).any() and np.isfinite(entropy).all()
    # The trainer's value is the sampler's: logits / T over the allowed tokens.
    free = np.asarray(logp(params, batch, 0.5)[0])
    assert (np.asarray(found)[batch.response_mask] > free[batch.response_mask]).all()
    sampled = constrained.replace(behaviour_logp=np.where(batch.response_mask, found, 0.0))
    gradient, metrics = step(sampled, advantage, temperature=0.5, kl=0.1, entropy=0.1)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(gradient)) and size(gradient) > 0.01
    assert metrics["approx_kl"] == pytest.approx(0, abs=1e-4) and metrics["clip_fraction"] == 0


def test_one_compilation_serves_all_values_and_the_old_state_is_reused(params, batch, advantage):
    tx = optimizer(lr=1e-3, warmup=0, weight_decay=0.0, clip_norm=1.0, b2=0.99)
    update = make_update(TINY, tx, PPOSettings(micro_rows=4))
    batch = batch.replace(reference_logp=batch.behaviour_logp)
    first = new_state(params, tx)
    second, _ = update(first, batch, advantage)
    assert all(x.is_deleted() for x in jax.tree.leaves(first.params))
    other = batch.replace(tokens=batch.tokens[::-1].copy(), action_mask=batch.response_mask)
    third, _ = update(second, other, advantage * 0)
    assert update._cache_size() == 1
    assert int(third.updates) == 2
    # What the state was made from is still there.
    assert not any(x.is_deleted() for x in jax.tree.leaves(params))


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_a_step_that_is_not_finite_is_skipped_and_counted(params, batch, advantage, poison):
    """Then the next good step is taken as if nothing had happened."""
    tx = optimizer(lr=1e-3, warmup=0, weight_decay=0.1, clip_norm=1.0, b2=0.99)
    update = make_update(TINY, tx, PPOSettings(micro_rows=4, kl=0.0))
    once, _ = update(new_state(params, tx), batch, advantage)
    bad = advantage.copy()
    bad.reshape(-1)[batch.transition[batch.action_mask][0]] = poison
    state, metrics = update(new_state(params, tx), batch, bad)
    assert metrics["skipped"] == 1 and int(state.opt_state.notfinite_count) == 1
    close(state.params, params, rtol=0, atol=0)
    state, metrics = update(state, batch, advantage)
    assert metrics["skipped"] == 0 and int(state.opt_state.notfinite_count) == 0
    close(state.params, once.params, rtol=0, atol=0)


def test_only_scored_tokens_pass_through_the_head_and_nothing_else_changes(step, logp, params, batch, advantage):
    """Rows of 5-10 response tokens in 12 places; the last places are empty."""
    places = np.full((B, 12), L, np.int32)
    for b, mask in enumerate(batch.response_mask):
        places[b, : mask.sum()] = np.flatnonzero(mask)
    narrow = batch.replace(scored=places)
    settings = {"kl": 0.3, "entropy": 0.05}
    gradient, metrics = step(batch, advantage, **settings)
    other, more = step(narrow, advantage, **settings)
    close(other, gradient, atol=2e-6)
    close(more, metrics, rtol=1e-5, atol=1e-6)
    for found, whole in zip(logp(params, narrow), logp(params, batch), strict=True):
        np.testing.assert_allclose(found, np.where(batch.response_mask, whole, 0.0), atol=1e-6)
    small = jax.make_jaxpr(lambda p: batch_logp(TINY, p, narrow, 1.0))(params)
    assert f"f32[{B},12,{TINY.vocab_size}]" in str(small) and f"f32[{B},{L},{TINY.vocab_size}]" not in str(small)


def test_the_scorer_gives_the_log_probabilities_of_the_update(logp, params, batch):
    score = make_scorer(TINY, temperature=0.7, micro_rows=2)
    np.testing.assert_allclose(score(params, batch), logp(params, batch, 0.7)[0], rtol=5e-6, atol=2e-6)


def test_a_batch_without_sampled_tokens_changes_nothing(step, batch, advantage):
    empty = batch.replace(response_mask=batch.response_mask & False, action_mask=batch.action_mask & False)
    gradient, metrics = step(empty, advantage, kl=0.3, entropy=0.05)
    assert size(gradient) == 0 and all(value == 0 for value in metrics.values())


def test_the_rate_rises_over_the_warmup_and_the_norm_is_clipped():
    """Adam's first steps are rate · sign(g) for a constant gradient, however large."""
    tx = optimizer(lr=0.1, warmup=3, weight_decay=0.0, clip_norm=1.0, b2=0.99)
    params, steps = {"w": jnp.array([1.0, -2.0])}, []
    state = tx.init(params)
    for _ in range(5):
        change, state = tx.update({"w": jnp.array([1e6, -1e6])}, state, params)
        steps.append(np.asarray(change["w"]))
    rates = np.array([0.025, 0.05, 0.075, 0.1, 0.1])
    np.testing.assert_allclose(steps, np.stack([-rates, rates], 1), rtol=1e-3)
    moments = optax.tree.get(state, "mu")["w"]
    np.testing.assert_allclose(moments, (1 - 0.9**5) * np.array([1, -1]) / np.sqrt(2), rtol=1e-4)
    decay = optimizer(lr=0.1, warmup=0, weight_decay=0.5, clip_norm=1.0, b2=0.99)
    change, _ = decay.update({"w": jnp.zeros(2)}, decay.init(params), params)
    np.testing.assert_allclose(change["w"], -0.1 * 0.5 * params["w"], rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"clip": 0.0}, r"ppo\.clip 0\.0 must be in \(0, 1\)"),
        ({"dual_clip": 1.0}, r"ppo\.dual_clip 1\.0 above 1"),
        ({"kl": -0.1}, r"kl -0\.1 and entropy 0\.001 must be >= 0"),
        ({"temperature": 0.0}, r"temperature 0\.0 > 0"),
        ({"micro_rows": 0}, r"micro_rows 0 >= 1"),
        ({"clip_high": -1.0}, r"ppo\.clip_high -1\.0 above 0"),
        ({"tokens": "all"}, r"ppo\.tokens 'all' is unknown, expected one of \('action', 'response'\)"),
        ({"ratio": "row"}, r"ppo\.ratio 'row' is unknown"),
        ({"aggregation": "mean"}, r"ppo\.aggregation 'mean' is unknown"),
        ({"kl_kind": "k4"}, r"ppo\.kl_kind 'k4' is unknown"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        PPOSettings(**settings)


def test_token_advantages_of_their_own_equal_those_of_steps_where_they_are_the_same(step, batch, advantage):
    tokens = np.repeat(advantage[:, :, None], L, axis=2)
    close(step(batch, tokens)[0], step(batch, advantage)[0], atol=1e-7)
    # Only the second token of every response counts: place 1 stands at position 5, the first action token.
    second = np.where(np.arange(L) == 1, tokens, 0.0)
    only = batch.replace(action_mask=batch.action_mask & (np.arange(L) == 5))
    scale = batch.action_mask.sum() / only.action_mask.sum()
    close(jax.tree.map(lambda x: x * scale, step(batch, second)[0]), step(only, advantage)[0], atol=2e-6)


@pytest.mark.parametrize("settings", [{"aggregation": "seq-mean-token-mean", "ratio": "sequence"}, {"kl_kind": "k2"}])
def test_other_losses_do_not_depend_on_micro_batches_either(step, batch, advantage, settings):
    settings = {"kl": 0.3, "entropy": 0.05} | settings
    gradient, _ = step(batch, advantage, **settings)
    assert size(gradient) > 0.001
    close(step(batch, advantage, micro_rows=2, **settings)[0], gradient, atol=1e-5)
