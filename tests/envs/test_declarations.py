"""What the benchmarks declare: their commands fit it, and their own libraries pass as generated ones must."""

from collections import Counter
from pathlib import Path

import pytest

from trca_jax.envs.registry import make_benchmark
from trca_jax.rollout.judge import transitions
from trca_jax.rollout.probe import probe
from trca_jax.rubrics.generate import check_on_sample, read_reply, render

BENCHMARKS = {"alfworld": {}, "webshop": {"queries": "offered"}, "searchqa": {"queries": "offered"}}


@pytest.fixture(scope="module", params=BENCHMARKS)
def played(request):
    """A benchmark and sample episodes."""
    benchmark = make_benchmark(request.param, **BENCHMARKS[request.param])
    tasks = benchmark.tasks("train", 16)
    benchmark.prepare(tasks, lambda done, of: None)
    return benchmark, probe(benchmark, [*tasks] * 12, 25, seed=0)


def test_every_command_fits_a_declared_action(played):
    benchmark, episodes = played
    used = Counter(
        benchmark.declaration.template(command) for e in episodes for s in e.steps for command in s.admissible
    )
    assert "no command" not in used
    rare = {"slice {object} with {object}", "use {lamp}"}  # few games have them
    assert set(benchmark.declaration.actions) - set(used) <= rare


def test_contexts_are_what_an_adapter_knows(played):
    benchmark, episodes = played
    _, known = transitions(episodes[0], benchmark)
    assert set(known[0]) == set(benchmark.declaration.contexts)
    assert benchmark.declaration.facts == benchmark.library.facts
    assert benchmark.declaration.fields == benchmark.library.fields


def test_the_shipped_library_would_pass_as_an_answer(played):
    benchmark, episodes = played
    source = Path(__file__).parents[2] / "trca_jax" / "envs" / benchmark.name / "rubric.toml"
    library = read_reply(source.read_text(), benchmark.name, benchmark.declaration)
    assert library == benchmark.library == read_reply(render(library), benchmark.name, benchmark.declaration)
    facts = [transitions(e, benchmark)[0] for e in episodes]
    if benchmark.name == "searchqa":  # sample play picks commands, and never writes two blocks into one answer
        with pytest.raises(ValueError, match="operator 'crowded': fires never"):
            check_on_sample(library, facts, [benchmark.bind(e.task) for e in episodes])
        return
    shares = check_on_sample(library, facts, [benchmark.bind(e.task) for e in episodes])
    assert 0.05 < shares["unparsed"] < 0.15 and 0.05 < shares["refused"] < 0.15
    final = "target_placed" if benchmark.name == "alfworld" else "fitting_bought"
    assert 0.005 < shares[final] < 0.1
