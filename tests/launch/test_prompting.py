"""launch/evaluate.py with the prompting agents: generated games, and a scripted model that solves some of them."""

import io
import json
from contextlib import redirect_stdout
from random import Random

import pytest
from chat_server import Bad, serving

from launch import evaluate, train
from trca_jax.agents.prompts import PROMPTS
from trca_jax.agents.reflexion import remind
from trca_jax.envs.registry import make_benchmark
from trca_jax.evaluation.report import wilson
from trca_jax.policy.tokenizer import read_tokenizer
from trca_jax.rollout.codec import Codec
from trca_jax.rollout.store import read_episodes

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections
KEY = "sk-verysecret-0123456789"
TYPES, GAMES, STEPS = ("pick_and_place_simple", "look_at_obj_in_light"), 6, 25


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setenv("TRCA_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def plans():
    """For the first observation of each game its id and the actions that solve it."""
    benchmark = make_benchmark("alfworld", task_types=TYPES)
    env, found = benchmark.make_env(), {}
    for task in benchmark.tasks("valid_unseen", GAMES):
        for seed in range(20):
            seen = env.reset(task)
            first, actions = seen.text, []
            adapter = benchmark.adapter(task, seen.text)
            player = benchmark.demonstrator(adapter, Random(seed), 1.0)
            while not seen.done and len(actions) < STEPS:
                actions.append(player.act(seen.admissible))
                offered, seen = seen.admissible, env.step(actions[-1])
                adapter.transition(actions[-1], seen.text, offered)
            if seen.won:
                found[first] = (task.id, actions)
                break
    assert len(found) == GAMES
    return found


class Model:
    """Knows every plan. Games with an even place it solves; the first odd one only after a failure, others never."""

    def __init__(self, plans):
        self.plans, self.places = plans, {name: n for n, name in enumerate(sorted(name for name, _ in plans.values()))}

    def __call__(self, body):
        first = body["messages"][0]["content"]
        if "Say in two to four sentences" in first:
            return "I only looked around. I will follow the plan."
        name, plan = next(own for text, own in self.plans.items() if text in first)
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        knows = self.places[name] % 2 == 0 or (self.places[name] == 1 and "noted for yourself" in first)
        return f"<think>step {turn}</think><action>{plan[turn] if knows else 'look'}</action>"


def arguments(url, folder, **fields):
    own = {
        "workdir": folder, "agent.endpoint": url, "agent.model": "gpt", "agent.prompt": "react", "eval.games": GAMES,
        "env.task_types": TYPES, "env.workers": 1, "tasks": 2, "group_size": 2, "chat.prices": "(2.0,10.0)",
        "chat.timeout_s": 5.0,
    }  # fmt: skip
    own |= {name.replace("__", "."): value for name, value in fields.items()}
    return ["--config=configs/alfworld.py:qwen2.5-0.5b", *(f"--config.{name}={value}" for name, value in own.items())]


def call(commands, *given):
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(evaluate.main, *given) == 0
    return out.getvalue()


def result(folder):
    return json.loads((folder / "evaluation-0.json").read_text())


def test_react_is_evaluated_as_a_policy_is_and_reflexion_goes_on_from_it(commands, plans, tmp_path, capfd):
    folder, model = tmp_path / "run", Model(plans)
    with serving(model) as server:
        out = call(commands, *arguments(server.url, folder))
        react, asked = result(folder), len(server.seen)
        won = [r["won"] for r in react["results"]]
        assert [r["task"] for r in react["results"]] == sorted(model.places)
        assert won == [model.places[r["task"]] % 2 == 0 for r in react["results"]] and sum(won) == 3
        assert (react["success"], react["low"], react["high"]) == (0.5, *wilson(3, 6))
        assert (react["prompt"], react["decode"], react["trials"], react["success_by_trial"]) == (
            "react",
            "free",
            1,
            [0.5],
        )
        assert react["temperature"] == 0.4
        steps = sum(r["steps"] for r in react["results"])
        assert react["usage"] == {
            "requests": steps, "cached": 0, "prompt_tokens": 10 * steps, "completion_tokens": 5 * steps,
            "cost": pytest.approx(steps * (10 * 2 + 5 * 10) / 1e6),
        }  # fmt: skip
        assert asked == steps and f"{steps:,} answers, 0 of them asked before" in out and "task type" in out

        episodes = read_episodes(folder / "evaluation-0.npz")
        assert [e.task.id for e in episodes] == sorted(model.places) and [e.won for e in episodes] == won
        plan = next(actions for name, actions in plans.values() if name == episodes[0].task.id)
        assert [step.action for step in episodes[0].steps] == plan
        assert episodes[0].steps[0].answer == f"<think>step 0</think><action>{plan[0]}</action>"

        call(commands, f"--run={folder}")  # the same again, from its record: nothing is asked
        assert len(server.seen) == asked and result(folder)["results"] == react["results"]
        assert result(folder)["usage"] == {**react["usage"], "cached": steps}

        call(commands, *arguments(server.url, folder, eval__trials=3))
        reflexion = result(folder)
        assert [r["trials"] for r in reflexion["results"]] == [1, 2, 1, 3, 1, 3]
        assert reflexion["success_by_trial"] == pytest.approx([3 / 6, 4 / 6, 4 / 6])
        assert reflexion["success"] == pytest.approx(4 / 6)
        # The first trials were played already: only notes (3 + 2) and the trials after them are new.
        new = len(server.seen) - asked
        assert reflexion["usage"]["cached"] == steps and reflexion["usage"]["requests"] == steps + new
        notes = sum("Say in two" in body["messages"][0]["content"] for body, *_ in server.seen)
        assert notes == 5
    assert all(headers["Authorization"] == f"Bearer {KEY}" for _, headers, _ in server.seen)
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in capfd.readouterr().err + out


def test_an_evaluation_that_was_stopped_goes_on_and_asks_nothing_twice(commands, plans, tmp_path, capfd):
    """The endpoint breaks down in the middle; what it had answered is not asked again, and the result is the same."""
    whole, folder, model = tmp_path / "whole", tmp_path / "run", Model(plans)
    with serving(model) as server:
        call(commands, *arguments(server.url, whole, env__max_steps=6))
        every = len(server.seen)
        del server.seen[:]
        server.answer = lambda body: model(body) if len(server.seen) <= 20 else Bad(403)
        assert commands.call(evaluate.main, *arguments(server.url, folder, env__max_steps=6)) == 2
        assert "refuses the request with state 403; correct the key in TRCA_API_KEY" in capfd.readouterr().err
        answered = len(list((folder / "replies").iterdir()))
        assert 0 < answered <= 20 and not (folder / "evaluation-0.json").exists()
        del server.seen[:]
        server.answer = model
        call(commands, *arguments(server.url, folder, env__max_steps=6))
        assert len(server.seen) == every - answered
    assert result(folder)["results"] == result(whole)["results"]
    assert result(folder)["usage"]["cached"] == answered


def test_requests_without_an_answer_leave_the_statistics(commands, plans, tmp_path):
    model = Model(plans)
    lost = sorted(model.places)[0]
    answer = lambda body: (  # noqa: E731
        Bad(500, headers={"Retry-After": "7200"})
        if any(text in body["messages"][0]["content"] for text, (name, _) in plans.items() if name == lost)
        else model(body)
    )
    with serving(answer) as server:
        out = call(commands, *arguments(server.url, tmp_path / "run", env__max_steps=6))
    found = result(tmp_path / "run")
    assert found["failures"] == 1 and found["episodes"] == 5 and "failed" in out
    assert "state 500" in found["results"][0]["failure"] and not found["results"][1]["failure"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"agent__decode": "admissible"}, "config.agent.endpoint = 'http"),
        ({"agent__prompt": "word"}, "needs answers in sentences"),
        (
            {"agent__endpoint": "", "agent__decode": "admissible", "eval__trials": 2},
            "config.eval.trials = 2 needs answers in sentences",
        ),
        ({"agent__endpoint": "localhost"}, "'localhost' is no address of an endpoint"),
        ({"agent__model": ""}, "needs the name of a model"),
        ({"eval__trials": 0}, "config.eval.trials = 0 must be at least 1"),
        ({"chat__concurrency": 0}, "concurrency 0"),
        ({}, "gave no answer in 1 tries: state 503, and it asks to wait 9999 s"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(commands, tmp_path, capfd, fields, told):
    with serving(lambda body: Bad(503, headers={"Retry-After": "9999"})) as server:
        assert commands.call(evaluate.main, *arguments(server.url, tmp_path / "run", **fields)) == 2
    (line,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("error: "))
    assert told in line


def test_a_model_behind_an_endpoint_is_not_trained(commands, tmp_path, capfd):
    assert commands.call(train.main, *arguments("http://127.0.0.1:9/v1", tmp_path)) == 2
    assert "cannot be trained; launch/evaluate.py plays it" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_local_policy_plays_by_the_same_prompts(commands, tmp_path):
    """Reflexion with random weights: nothing is won, so each game is tried twice, the second time with a note."""
    fields = {"agent__prompt": "react", "agent__decode": "free", "agent__max_new": 4, "env__max_steps": 2}
    fields |= {"agent__buckets__chunk": "(768,)", "agent__buckets__slots": "(1024,)", "eval__trials": 2}
    call(commands, *commands.arguments(tmp_path / "run", **fields))
    found, episodes = result(tmp_path / "run"), read_episodes(tmp_path / "run" / "evaluation-0.npz")
    assert [r["trials"] for r in found["results"]] == [2, 2] and found["success_by_trial"] == [0, 0]
    assert (found["prompt"], found["decode"], found["failures"]) == ("react", "free", 0) and "usage" not in found
    prompt = PROMPTS["react"](make_benchmark("alfworld"))
    codec = Codec(read_tokenizer(commands.model), prompt, 4)
    for episode in episodes:
        told = prompt.first(remind(episode.task.instruction, episode.reflections), episode.first_observation, ())
        assert episode.steps[0].prompt_ids.tolist() == codec.prompt_ids(told)
        assert all(step.response_ids.size and step.after for step in episode.steps)
    assert any(note for episode in episodes for note in episode.reflections)
