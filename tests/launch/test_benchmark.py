"""The suites' arithmetic, the equal play of both engines, and what is printed."""

import json
from types import SimpleNamespace

import pytest
from absl import flags

from configs.alfworld import get_config
from launch import benchmark
from launch.suites import Row, alfworld, compare, credit, envs, rubric, webshop
from trca_jax.envs.alfworld.games import load_games
from trca_jax.envs.base import TaskSet

STOCK_IS_BROKEN = bool(alfworld.WHY_BROKEN)
WHY_BROKEN = "TextWorld's own engine does not run under Python 3.13; this test did not run"


def test_a_ratio_above_one_is_better_whichever_way():
    pairs = [(8.0, 2.0), (10.0, 4.0), (900.0, 5.0)]
    assert compare("speed", "1/s", pairs, more_is_better=True) == Row("speed", 10.0, "1/s", 4.0, 2.5)
    assert compare("wait", "s", pairs, more_is_better=False) == Row("wait", 10.0, "s", 4.0, 0.4)


@pytest.mark.skipif(STOCK_IS_BROKEN, reason=WHY_BROKEN)
def test_both_engines_play_alike_and_ours_is_faster(monkeypatch):
    games = load_games("generated", "train", task_types=["look_at_obj_in_light"], count=8).tasks
    small = sorted(games, key=lambda task: len(task.payload.problem))[:2]
    asked = []

    def load(source, split, count):
        asked.append((source, split, count))
        return TaskSet(tuple(small), "test", "train", "")

    monkeypatch.setattr(alfworld, "load_games", load)
    rows = {row.name: row for row in alfworld.alfworld("generated", quick=True)}
    assert asked == [("generated", "train", 4)]
    assert list(rows) == ["alfworld_steps_per_s", "alfworld_reset_ms", "alfworld_load_ms", "alfworld_first_load_ms"]
    steps = rows["alfworld_steps_per_s"]
    assert steps.ratio == steps.value / steps.reference > 10
    assert rows["alfworld_load_ms"].ratio > 3 and rows["alfworld_reset_ms"].ratio > 3

    slow = alfworld.AlfworldEnv.step
    answer = lambda env, command: slow(env, command) if command else slow(env, "look")  # noqa: E731
    monkeypatch.setattr(alfworld.AlfworldEnv, "step", answer)
    with pytest.raises(ValueError, match=r"answer differently in train/look_at_obj_in_light"):
        alfworld.alfworld("generated", quick=True)


def test_envs_measures_every_engine_on_generated_data_or_on_what_is_given(monkeypatch, tmp_path):
    asked, searched = [], []
    monkeypatch.setattr(envs, "alfworld", lambda *given: asked.append(given) or [Row("games", 1.0, "s")])
    monkeypatch.setattr(envs, "searchqa", lambda *given: searched.append(given) or [Row("searches", 2.0, "s")])
    monkeypatch.setattr(envs, "WHY_BROKEN", "")
    monkeypatch.setattr(webshop, "_fresh", lambda source: {"ready_s": 2.0, "ready_mb": 30.0, "mb": 40.0})
    monkeypatch.setattr(webshop, "step_ms", lambda source, walks: 0.5 if source == "generated" else 0.7)
    shop, library = tmp_path / "shop", tmp_path / "library"
    for file in (shop / "items_shuffle.json", library / "corpus.jsonl"):
        file.parent.mkdir()
        file.write_text("[]")
    config = get_config()
    rows = {}
    for source in ("generated", str(shop), str(library), "elsewhere"):
        config.env.data = source
        rows[source] = [(row.name, row.value, row.unit) for row in envs.envs(config, quick=True)]
    games, searches = ("games", 1.0, "s"), ("searches", 2.0, "s")
    own = [("webshop_step_ms", 0.5, "ms"), ("webshop_ready_s", 2.0, "s"), ("webshop_128_episodes_mb", 40.0, "MB")]
    data = [("webshop_data_step_ms", 0.7, "ms"), ("webshop_data_ready_s", 2.0, "s")]
    data.append(("webshop_data_128_episodes_mb", 40.0, "MB"))
    assert rows["generated"] == rows["elsewhere"] == rows[str(library)] == [games, *own, searches]
    assert rows[str(shop)] == [games, *own, *data, searches]
    assert asked == [("generated", True)] * 3 + [("elsewhere", True)]
    assert searched == [("generated", True), ("generated", True), (str(library), True), ("generated", True)]

    monkeypatch.setattr(envs, "WHY_BROKEN", "it does not run")
    assert [row.name for row in envs.envs(config, quick=True)] == [name for name, *_ in (*own, searches)]


def test_a_step_of_webshop_is_the_mean_of_all(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(webshop.time, "thread_time", lambda: next(clock) * 2e-3)
    assert webshop.step_ms("generated", 3) == pytest.approx(2.0)  # by that clock each step takes 2 ms


def test_a_fresh_process_says_what_it_needed(tmp_path):
    figures = webshop._fresh("generated")
    assert figures["ready_s"] > 0 and 0 < figures["ready_mb"] <= figures["mb"] + 1 < 200
    with pytest.raises(ValueError, match=r"failed: ValueError: no WebShop data at .*nowhere"):
        webshop._fresh(str(tmp_path / "nowhere"))


def test_play_offers_invalid_commands_and_follows_the_seed():
    commands = []

    class Env:
        def reset(self, task):
            return SimpleNamespace(text="", admissible=("look", "wait"), won=False)

        def step(self, command):
            commands.append(command)
            return SimpleNamespace(text=command, admissible=("look", "wait"), won=False)

    task = SimpleNamespace(payload=SimpleNamespace(walkthrough=("first", "second")))
    seconds, more, observed = alfworld._play(Env(), task, 200, "a")
    assert [entry[0] for entry in observed] == commands and len(commands) == 200
    invalid = sum(command in ("", "dance", "go to nowhere 1") for command in commands)
    assert 8 <= invalid <= 35 and commands.index("first") < commands.index("second") and seconds >= 0 <= more
    assert alfworld._play(Env(), task, 200, "a")[2] == observed != alfworld._play(Env(), task, 200, "b")[2]


def test_rubric_takes_medians_of_the_iterations_after_the_first(monkeypatch):
    seconds = [(90.0, 9.0, 100.0), (0.5, 0.1, 100.0), (0.2, 0.1, 30.0), (1.0, 0.2, 150.0)]
    records = [
        {"iteration": i, "steps": 20.0, "failures": 1 if i == 2 else 0}
        | {"seconds": {"judge": judge, "credit": credit, "total": total}}
        for i, (judge, credit, total) in enumerate(seconds)
    ]

    class Fake:
        log = SimpleNamespace(records=records)

        def __init__(self, *_, **__): ...
        def __enter__(self):
            return self

        def __exit__(self, *_): ...
        def tasks(self, split, count, progress):
            assert (split, count) == ("train", 4)
            return SimpleNamespace(tasks=())

        def run(self, display): ...
        def close(self): ...

    for name in ("World", "Trainer", "start_policy"):
        monkeypatch.setattr(rubric, name, Fake)
    rows = {row.name: row for row in rubric.rubric(get_config(), quick=True)}
    assert rows["transitions_per_s"].value == pytest.approx(640.0)  # of 20 · 16/0.5, 20 · 15/0.2, 20 · 16/1.0
    assert rows["iteration_share"].value == pytest.approx(0.008)  # of 0.006, 0.01, 0.008
    assert rows["iteration_s"].value == 100.0


def test_credit_compares_with_the_loop_and_with_numpy(monkeypatch):
    monkeypatch.setattr(credit, "METHODS", {name: credit.METHODS[name] for name in ("grpo", "igpo")})
    rows = {row.name: row for row in credit.credit(get_config(), quick=True)}
    assert list(rows) == [
        f"{start}_{steps}{end}"
        for steps in (3200, 6400)
        for start, end in [
            *((name, f"_vs_{other}") for name in ("grpo", "igpo") for other in ("numpy", "loop")),
            ("contexts", ""),
        ]
    ]
    loop = rows["igpo_6400_vs_loop"]
    assert loop.unit == "ms" and loop.ratio == loop.reference / loop.value > 5
    assert rows["contexts_3200"].reference is None


@pytest.fixture
def command(monkeypatch):
    """Runs the command line with one made-up suite."""

    def suite(config, quick):
        return [Row("share", 0.25, "of all"), Row(f"quick_{quick}_{config.env.data}", 12345.678, "1/s", 5.0, 2469.1356)]

    def call(*arguments):
        monkeypatch.setattr(benchmark, "SUITES", {"made_up": suite, "other": suite})
        monkeypatch.setattr("sys.argv", ["benchmark.py", *arguments])
        flags.FLAGS.unparse_flags()
        for flag in ("quick", "data"):
            flags.FLAGS[flag].unparse()
        return benchmark.main()

    return call


def test_the_last_line_is_the_json_object(command, capsys):
    assert command("made_up", "--quick", "--data", "here") == 0
    lines = capsys.readouterr().out.splitlines()
    assert json.loads(lines[-1]) == {
        "suite": "made_up",
        "rows": [
            {"name": "share", "value": 0.25, "unit": "of all", "reference": None, "ratio": None},
            {"name": "quick_True_here", "value": 12345.678, "unit": "1/s", "reference": 5.0, "ratio": 2469.1356},
        ],
    }
    assert any("share" in line and "0.25" in line for line in lines[:-1])
    assert any("12,346" in line and "2,469" in line for line in lines[:-1])


@pytest.mark.parametrize("arguments", [("nope",), (), ("made_up", "other")])
def test_an_unknown_suite_is_one_line_that_names_them(command, arguments):
    expected = rf"benchmark suite '{' '.join(arguments)}' is unknown, expected one of made_up, other"
    with pytest.raises(ValueError, match=expected):
        command(*arguments)


def test_a_mistyped_flag_is_one_line(command):
    with pytest.raises(ValueError, match="quik"):
        command("made_up", "--quik")


def test_the_suites_that_others_rely_on_are_there():
    assert {"credit", "envs", "rubric"} <= set(benchmark.SUITES)


@pytest.mark.skipif(not STOCK_IS_BROKEN, reason="the stock engine runs here")
def test_where_the_stock_engine_cannot_run_that_is_said():
    with pytest.raises(ValueError, match=r"use Python 3\.11 or 3\.12"):
        alfworld.alfworld("generated", quick=True)
