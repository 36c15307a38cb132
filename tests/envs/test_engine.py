"""The engine against TextWorld's own, and what slots may and may not share."""

import os
import random
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from functools import cache

import pytest

from trca_jax.envs.alfworld import engine, translate
from trca_jax.envs.alfworld.engine import AlfworldEnv, entity_names
from trca_jax.envs.alfworld.games import TASK_TYPES, Game, load_games
from trca_jax.envs.base import Task
from trca_jax.envs.pool import EnvPool

INVALID = ("", "dance", "go to nowhere 1", "Go To Fridge 1", "take apple 1", "put apple 1 in fridge 1", "look around")


@pytest.fixture(scope="session")
def real_games(shared_data):
    return load_games(str(shared_data / "alfworld"), "train").tasks


@pytest.fixture
def game(real_games):
    """One small real game."""
    return min(real_games, key=lambda task: len(task.payload.problem_text()))


def changed(task, **parts):
    return replace(task, payload=replace(task.payload, **parts))


@pytest.fixture(scope="session")
def stock(tmp_path_factory):
    """TextWorld's PddlEnv with ALFWorld's names: the engine as it is shipped."""
    if sys.version_info >= (3, 13):
        pytest.skip("TextWorld's own engine does not run under Python 3.13; ours was not compared with it")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALFWORLD_DATA", str(tmp_path_factory.mktemp("alfworld")))
        patch.setattr(sys, "argv", sys.argv)
        import fast_downward
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv

        env = AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)))

        def play(task, choose):
            """(text, admissible, won) after the reset and after every command of `choose(step, admissible)`."""
            game = task.payload
            data = {
                "pddl_domain": game.domain,
                "grammar": game.grammar.replace(Game.PLACEHOLDER, game.goal),
                "pddl_problem": game.problem_text(),
            }
            with pytest.MonkeyPatch.context() as once:
                # load and reset translate the same texts; once is enough
                once.setattr(fast_downward, "pddl2sas", cache(fast_downward.pddl2sas))
                env.load(data)
                state = env.reset()
            yield None, state.feedback, tuple(state.admissible_commands), state["won"]
            for step in range(10**6):
                command = choose(step, state.admissible_commands)
                if command is None:
                    return
                state, _, _ = env.step(command)
                yield command, state.feedback, tuple(state.admissible_commands), state["won"]

        yield play


def chooser(walkthrough, seed, steps):
    """The walkthrough, with detours: invalid commands and random admissible ones that favour changes of state."""
    rng, plan = random.Random(seed), list(walkthrough)

    def choose(step, admissible):
        if step >= steps:
            return None
        draw = rng.random()
        if draw < 0.1:
            return rng.choice(INVALID)
        if draw < 0.45 and plan:
            return plan.pop(0)
        changing = [c for c in admissible if not c.startswith(("go to", "examine", "look", "help", "inventory"))]
        return rng.choice(changing if changing and draw < 0.8 else admissible)

    return choose


def assert_equal_play(stock, task, seed, steps):
    env = AlfworldEnv()
    for command, text, admissible, won in stock(task, chooser(task.payload.walkthrough, seed, steps)):
        ours = env.reset(task) if command is None else env.step(command)
        assert (ours.text, ours.admissible, ours.won) == (text, admissible, won), (task.id, command)


def test_equal_to_the_stock_engine_state_by_state(real_games, stock):
    small = []
    for kind in TASK_TYPES:
        of_kind = sorted((t for t in real_games if t.kind == kind), key=lambda t: len(t.payload.problem))
        small += of_kind[: 5 if kind == TASK_TYPES[0] else 3]
    assert len(small) == 20
    for seed, task in enumerate(small):
        assert_equal_play(stock, task, seed, steps=12)


def test_old_wording_plays_with_its_own_grammar(game, stock):
    old = game.payload.grammar
    for new, former in (
        ('"move {o} to {r}"', '"put {o} in/on {r}"'),
        ("You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."),
        ("You arrive at {r.name}.", "You arrive at {lend.name}."),
    ):
        assert new in old
        old = old.replace(new, former)
    task = changed(game, grammar=old)
    env = AlfworldEnv()
    first = env.reset(task)
    arrived = env.step(next(c for c in first.admissible if c.startswith("go to")))
    assert arrived.text.startswith("You arrive at loc ")
    assert_equal_play(stock, task, seed=5, steps=40)


def test_walkthroughs_win_once_and_the_reward_comes_with_the_win(real_games):
    env = AlfworldEnv()
    for kind in TASK_TYPES:
        task = next(t for t in real_games if t.kind == kind)
        first = env.reset(task)
        assert first.text.endswith(f"Your task is to: {task.instruction}")
        assert not first.done and not first.won
        seen = [env.step(command) for command in task.payload.walkthrough]
        assert [o.reward for o in seen] == [0.0] * (len(seen) - 1) + [1.0]
        assert [o.won for o in seen] == [o.done for o in seen] == [False] * (len(seen) - 1) + [True]
        assert env.step("look").reward == 0.0  # no second prize


def test_an_invalid_command_changes_nothing(game):
    env = AlfworldEnv()
    env.reset(game)
    before = env.step("look")
    state = env.hidden_facts()
    answer = env.step("put everything away")
    assert answer.text == "Nothing happens." and answer.reward == 0.0
    assert answer.admissible == before.admissible and env.hidden_facts() == state
    assert env.step("  look \n").text == before.text  # blanks around a command are forgiven


def test_slots_share_the_game_but_not_its_state(game):
    first, second, alone = AlfworldEnv(), AlfworldEnv(), AlfworldEnv()
    start = first.reset(game)
    hits = engine.load_game.cache_info().hits
    assert second.reset(game) == start
    assert engine.load_game.cache_info().hits == hits + 1 and first._game is second._game
    for command in game.payload.walkthrough:
        won = first.step(command)
    assert won.won
    # The second slot is still at the start, and a walk in it equals a walk in a fresh process's only slot.
    choose, step, seen = chooser(game.payload.walkthrough, 3, 30), 0, start
    alone.reset(game)
    while (command := choose(step, seen.admissible)) is not None:
        seen = second.step(command)
        assert seen == alone.step(command)
        step += 1
    assert first.reset(game) == start


def test_reset_is_aimed_and_forgets_the_last_game(real_games, game):
    other = next(t for t in real_games if t.kind != game.kind)
    env = AlfworldEnv()
    start = env.reset(game)
    env.step(game.payload.walkthrough[0])
    assert other.instruction in env.reset(other).text
    assert env.reset(game) == start


def test_names_are_numbered_downward_in_sorted_order():
    names = entity_names({"apple_bar_1", "apple_bar_2", "sink_bar_1", "sink_bar_1_bar_sinkbasin", "agent1"})
    assert names == {
        "apple_bar_1": "apple 2",
        "apple_bar_2": "apple 1",
        "sink_bar_1": "sink 1",
        "sink_bar_1_bar_sinkbasin": "sinkbasin 1",
        "agent1": "agent1 ",
    }


def test_hidden_facts_follow_the_play(game):
    env = AlfworldEnv()
    env.reset(game)
    assert not any(fact[0] == "holds" for fact in env.hidden_facts())
    for command in game.payload.walkthrough:
        env.step(command)
        if command.startswith("take"):
            break
    name = command.removeprefix("take ").split(" from ")[0]
    assert ("holds", "agent1", name) in env.hidden_facts()


def test_translations_are_kept_and_damaged_ones_are_made_anew(game, tmp_path, monkeypatch):
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path))
    made = translate.translate(game.payload)
    (file,) = tmp_path.rglob("*.z")
    monkeypatch.setattr(translate, "_translate", lambda *_: pytest.fail("translated twice"))
    assert translate.translate(game.payload) == made
    monkeypatch.undo()
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert translate.translate(game.payload) == made
    assert [f.name for f in tmp_path.rglob("*") if f.is_file()] == [file.name]  # nothing temporary is left


def test_translation_leaves_the_process_as_it_was(game, tmp_path, monkeypatch):
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path))
    argv, out = list(sys.argv), sys.stdout
    translate.translate(game.payload)
    assert sys.argv == argv and sys.stdout is out
    with pytest.raises(ValueError, match="cannot be translated"):
        translate.translate(changed(game, problem=zlib.compress(b"(define (problem nonsense)")).payload)
    assert sys.argv == argv and sys.stdout is out


def test_an_unwritable_cache_is_said_and_does_not_stop_the_play(game, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="TRCA_CACHE"):
        assert translate.translate(game.payload).sas


def test_cache_is_warmed_in_parallel(real_games, tmp_path, monkeypatch):
    monkeypatch.setenv("TRCA_CACHE", str(tmp_path))
    small = sorted(real_games, key=lambda t: len(t.payload.problem_text()))[:3]
    said = []
    assert translate.warm_cache(small, 2, lambda done, of: said.append((done, of))) == 3
    assert said == [(1, 3), (2, 3), (3, 3)] and len(list(tmp_path.rglob("*.z"))) == 3
    assert translate.warm_cache(small, 2) == 0


def test_a_missing_engine_is_one_clear_error(monkeypatch):
    translate.fast_downward.cache_clear()
    monkeypatch.setitem(sys.modules, "fast_downward", None)
    with pytest.raises(ValueError, match=r"g\+\+ and make"):
        AlfworldEnv().reset(Task("x", "alfworld", "", "", None))
    monkeypatch.undo()


@pytest.mark.parametrize("grammar", ["no grammar at all", 'grammar :: """{"a": [{"rhs": "b"}]}""";'])
def test_a_foreign_grammar_is_one_clear_error(game, grammar):
    with pytest.raises(ValueError, match="grammar"):
        AlfworldEnv().reset(changed(game, grammar=grammar))


def test_a_grammar_cannot_run_code(game):
    evil = game.payload.grammar.replace("{r.name}", "{__import__('os').getcwd()}", 1)
    with pytest.raises(ValueError, match="grammar"):
        AlfworldEnv().reset(changed(game, grammar=evil))


def test_playing_leaves_no_trace_of_the_alfworld_package(tmp_path):
    code = """
import os, sys
from trca_jax.envs.alfworld.engine import AlfworldEnv
from trca_jax.envs.alfworld.games import load_games
(task,) = load_games("generated", "train", task_types=["look_at_obj_in_light"], count=1).tasks
env = AlfworldEnv()
env.reset(task)
assert [env.step(c).won for c in task.payload.walkthrough][-1]
assert "alfworld" not in sys.modules and "jax" not in sys.modules and "ALFWORLD_DATA" not in os.environ
assert sys.argv == ["-c", "one", "--two"]
"""
    env = {k: v for k, v in os.environ.items() if k != "ALFWORLD_DATA"}
    env |= {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    env.pop("TRCA_CACHE", None)
    subprocess.run([sys.executable, "-c", code, "one", "--two"], check=True, env=env)
    assert [p.name for p in (tmp_path / ".cache").iterdir()] == ["trca_jax"]


def test_a_group_plays_in_worker_processes(game):
    with EnvPool(AlfworldEnv, slots=4, workers=2) as pool:
        slots = [0, 1, 2, 3]
        pool.reset(slots, [game] * 4)
        first = pool.receive(slots)
        assert first == [AlfworldEnv().reset(game)] * 4
        for command in game.payload.walkthrough:
            pool.step(slots, [command, "look", command, "no"])
            answers = pool.receive(slots)
        assert [o.won for o in answers] == [True, False, True, False]
        assert answers[3].text == "Nothing happens." and answers[3].admissible == first[3].admissible
        broken = changed(game, problem=zlib.compress(b"(define (problem nonsense)"))
        pool.reset([1], [broken])
        assert "cannot be translated" in pool.receive([1])[0].failure


def test_thousand_steps_a_second(game):
    env, rng = AlfworldEnv(), random.Random(0)
    seen = env.reset(game)
    start = time.process_time()
    for _ in range(1000):
        seen = env.step(rng.choice(seen.admissible))
    assert time.process_time() - start < 1.0
