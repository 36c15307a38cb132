"""Every method of the table: invariances, exact zeros, one compilation per shape, clear errors."""

import dataclasses

import jax
import numpy as np
import oracles
import pytest
from credit_batches import (
    DOCUMENTS,
    ITEMS,
    ROLLOUTS,
    STEPS,
    TOKENS,
    at_live_steps,
    batch_of,
    batches,
    pad,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from trca_jax.credit import METHODS, Credit, CreditBatch, make

PENALTY = 0.1
PUNISHED = {name for name, method in METHODS.items() if hasattr(method.defaults, "invalid_penalty")}
METHOD = {name: make(name, **({"invalid_penalty": PENALTY} if name in PUNISHED else {})) for name in METHODS}
SIGNALS = {
    "gold_logp": np.zeros((ROLLOUTS, STEPS + 1)) - 1,
    "tool": np.ones((ROLLOUTS, STEPS), int),
    "hindsight_logp": np.zeros((ROLLOUTS, STEPS)),
    "token_values": np.zeros((ROLLOUTS, STEPS, TOKENS)),
    "token_mask": np.ones((ROLLOUTS, STEPS, TOKENS), int),
    "golden_similarity": np.zeros((ROLLOUTS, STEPS, DOCUMENTS)),
    "redundancy": np.zeros((ROLLOUTS, STEPS)),
    "step_score": np.zeros((ROLLOUTS, STEPS)),
}
every_method = pytest.mark.parametrize("name", METHODS)


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


def drawn_shape(*, r_env, **given):
    """A batch padded to the shape of the drawn ones, so that nothing compiles again."""
    judgement = np.zeros((*np.shape(r_env), ITEMS), np.int64)
    return dataclasses.replace(pad(batch_of(r_env=r_env, judgement=judgement, **given), ROLLOUTS, STEPS), **SIGNALS)


def reorder(batch, rollouts):
    return CreditBatch(**{k: v[rollouts] for k, v in vars(batch).items() if v is not None})


@pytest.mark.parametrize("name", [name for name in METHODS if name != "trca"])
@settings(deadline=None, max_examples=30)
@given(batches())
def test_advantages_equal_the_loop(name, batch):
    advantage = at_live_steps(batch, METHOD[name](batch).advantage)
    expected = getattr(oracles, name)(batch, **({"penalty": PENALTY} if name in PUNISHED else {}))
    assert advantage.keys() == expected.keys()
    for place, value in expected.items():
        close(advantage[place], value)


@every_method
@settings(deadline=None, max_examples=15)
@given(batches())
def test_padding_changes_nothing(name, batch):
    """Four more rollouts of length 0 and two more steps of rubbish: the same values, and exact zeros around them."""
    credit, padded = METHOD[name](batch), METHOD[name](pad(batch, ROLLOUTS + 4, STEPS + 2))
    for field in dataclasses.fields(Credit):
        if field.name == "diagnostics" or getattr(credit, field.name) is None:
            continue
        value, wide = (np.asarray(getattr(c, field.name)) for c in (credit, padded))
        corner = tuple(slice(n) for n in value.shape)
        close(wide[corner], value)
        wide = wide.copy()
        wide[corner] = 0
        assert (wide == 0).all(), field.name
    for key, value in credit.diagnostics.items():
        close(padded.diagnostics[key], value)


@every_method
@settings(deadline=None, max_examples=15)
@given(batches(), st.permutations(range(ROLLOUTS)))
def test_reordering_rollouts_reorders_advantages(name, batch, order):
    order = np.array(order)
    close(METHOD[name](reorder(batch, order)).advantage, np.asarray(METHOD[name](batch).advantage)[order])


@every_method
@settings(deadline=None, max_examples=15)
@given(batches(), st.permutations(range(6)))
def test_names_of_contexts_and_tasks_do_not_matter(name, batch, names):
    context = np.where(batch.context >= 0, np.array(names)[np.maximum(batch.context, 0)] * 5, -1)
    following = np.where(batch.next_context >= 0, np.array(names)[np.maximum(batch.next_context, 0)] * 5, -1)
    renamed = dataclasses.replace(batch, context=context, next_context=following, group=7 - 3 * batch.group)
    close(METHOD[name](renamed).advantage, METHOD[name](batch).advantage)


@pytest.mark.parametrize("name", [name for name in METHODS if "token_values" not in METHODS[name].needs])
def test_equal_outcomes_give_exactly_zero_in_float32(name):
    """Seven rollouts of reward 0.1 and unequal length: their float32 mean is not 0.1."""
    batch = drawn_shape(r_env=np.tile([0.1, 0, 0], (7, 1)), length=[1, 2, 3, 3, 2, 1, 3], group=[0] * 7)
    credit = METHOD[name](batch)
    episode = np.asarray(credit.advantage - credit.step)
    assert episode.dtype == np.float32 and (episode == 0).all()


def test_a_task_of_one_step_keeps_its_raw_score_except_in_trca():
    batch = drawn_shape(r_env=[[2.0]], length=[1], group=[0])
    advantages = {name: float(METHOD[name](batch).advantage[0, 0]) for name in ("trca", "grpo", "rloo", "gigpo")}
    assert advantages == {
        "trca": 0.0,
        "grpo": pytest.approx(2.0, rel=1e-5),
        "rloo": 2.0,
        "gigpo": pytest.approx(2.0, rel=1e-5),
    }


@every_method
def test_diagnostics_by_hand(name):
    """Seven real steps in contexts of sizes 3, 2, 1, 1; task 0 mixed, task 1 all failed, task 2 a single rollout."""
    batch = drawn_shape(
        r_env=np.zeros((6, 2)),
        outcome=[1, 0, 0, 0, 1, np.nan],
        length=[2, 2, 1, 1, 1, 0],
        group=[0, 0, 1, 1, 2, 2],
        context=[[0, 0], [0, 1], [2, 9], [2, 9], [3, 9], [4, 4]],
    )
    diagnostics = METHOD[name](batch).diagnostics
    assert float(diagnostics["outcome_flat"]) == pytest.approx(2 / 3)
    assert ("context_shared" in diagnostics) == ("context" in METHODS[name].needs)
    if "context" in METHODS[name].needs:
        assert float(diagnostics["context_group_size"]) == pytest.approx(7 / 4)
        assert float(diagnostics["context_shared"]) == pytest.approx(5 / 7)


@every_method
def test_other_lengths_and_ids_compile_nothing(name):
    compilations = []

    def listen(event, seconds, **_):
        if "compile" in event:
            compilations.append(event)

    credit = make(name)
    signals = {k: np.resize(v, (4, 11 + (k == "gold_logp"), *v.shape[2:])) for k, v in SIGNALS.items()}
    batch = batch_of(r_env=np.ones((4, 11)), length=[11, 3, 3, 3], group=[0, 0, 1, 1], **signals)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        credit(batch)
        assert compilations
        compilations.clear()
        credit(dataclasses.replace(batch, length=np.array([1, 0, 2, 3]), group=np.array([3, 3, 0, 0])))
        make(name)(batch)
        assert compilations == []
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_jax_arrays_are_taken_too():
    batch = batch_of(r_env=[[0.0, 1], [0, 0]], length=[2, 1], group=[0, 0])
    on_device = jax.tree.map(jax.numpy.asarray, batch)
    np.testing.assert_array_equal(make("grpo")(on_device).advantage, make("grpo")(batch).advantage)


@pytest.mark.parametrize(
    "name, overrides, message",
    [
        ("gpro", {}, "credit method 'gpro' is unknown, expected one of trca, grpo"),
        ("grpo", {"lam": 0.5}, "credit method 'grpo' has no setting 'lam', expected one of stat_unit, norm"),
        ("trca", {"lam": 1.5}, r"lam is 1.5, expected a finite number in \[0, 1\]"),
        ("trca", {"gamma": float("nan")}, "gamma is nan"),
        ("trca", {"evidence": -1.0}, "evidence is -1.0"),
        ("trca", {"budget_mode": "items"}, "budget_mode is 'items', expected one of 'category', 'item'"),
        ("trca", {"ddof": 2}, "ddof is 2, expected one of 0, 1"),
        ("gigpo", {"omega": "1"}, "omega is '1', expected a finite number"),
        ("rloo", {"stat_unit": "step"}, "stat_unit is 'step', expected one of 'row', 'trajectory'"),
    ],
)
def test_wrong_settings_name_the_choices(name, overrides, message):
    with pytest.raises(ValueError, match=message):
        make(name, **overrides)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"outcome": np.zeros((2, 1))}, r"CreditBatch.outcome has shape \(2, 1\), expected \(R\) = \(2,\)"),
        ({"context": np.zeros((2, 4), int)}, r"CreditBatch.context has shape \(2, 4\), expected \(R, T\) = \(2, 3\)"),
        ({"gold_logp": np.zeros((2, 3))}, r"gold_logp has shape \(2, 3\), expected \(R, T\+1\) = \(2, 4\)"),
        ({"judgement": np.zeros((2, 3))}, r"CreditBatch.judgement has shape \(2, 3\), expected \(R, T, J\)"),
        ({"length": np.array([4, 1])}, "CreditBatch.length holds 4, expected 0..3"),
        ({"group": np.array([0, 2])}, "CreditBatch.group holds 2, expected 0..1"),
        ({"context": np.full((2, 3), 6)}, "CreditBatch.context holds 6, expected 0..5"),
        ({"context": np.zeros((2, 3))}, "CreditBatch.context has dtype float64, expected integers"),
        ({"outcome": np.array([np.nan, 0])}, "CreditBatch.outcome holds nan at a real step, expected finite numbers"),
        ({"r_env": np.array([[0, np.inf, 0], [0, 0, 0]])}, "CreditBatch.r_env holds inf at a real step"),
        ({"length": np.array([-1, 1])}, "CreditBatch.length holds -1, expected 0..3"),
    ],
)
def test_wrong_batches_name_the_field_and_both_shapes(change, message):
    batch = batch_of(r_env=np.zeros((2, 3)), length=[3, 1], group=[0, 1])
    with pytest.raises(ValueError, match=message):
        make("grpo")(dataclasses.replace(batch, **change))


def test_a_context_shared_by_two_tasks_is_refused_where_contexts_are_compared():
    batch = drawn_shape(r_env=np.zeros((2, 3)), length=[3, 1], group=[0, 1], context=[[0, 1, 2], [2, 5, 5]])
    METHOD["grpo"](batch)
    for name in ("trca", "gigpo"):
        with pytest.raises(ValueError, match=r"CreditBatch.context 2 occurs in two tasks"):
            METHOD[name](batch)


def test_a_missing_signal_is_named():
    batch = batch_of(r_env=np.zeros((2, 3)), length=[3, 1], group=[0, 1])
    with pytest.raises(ValueError, match=r"CreditBatch.gold_logp is None, expected an array"):
        batch.check({"gold_logp", "judgement"})
