"""launch/warmstart.py: from scripted play to a start policy that runs can load."""

import dataclasses
import io
import json
import re
from contextlib import redirect_stdout

import jax
import numpy as np
import pytest

from launch import train, warmstart
from trca_jax.learner.record import versions
from trca_jax.policy.config import tiny
from trca_jax.policy.load import load_policy
from trca_jax.policy.tokenizer import word_tokenizer
from trca_jax.rollout.demonstrate import demonstrate
from trca_jax.rollout.world import World, make_codec

pytestmark = [
    pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning"),  # of ml_collections
    pytest.mark.filterwarnings("ignore:Attempting to set identical:UserWarning"),  # the curve of no iteration
]
SETTINGS = {
    "warmstart__steps": 80, "warmstart__phases": (
        (0.5, 0.3, 16, "all", 8, 0.01, 0.4), (0.5, 1.0, 32, "won", 4, 0.01, 0.1),
    ),
}  # fmt: skip


def small(vocab_size):
    return dataclasses.replace(tiny(vocab_size), hidden_size=32, intermediate_size=48, num_layers=1)


def test_the_same_seed_gives_the_same_demonstrations(commands, tmp_path):
    config = commands.config(tmp_path)
    with World(config.env, slots=4) as world:
        tasks = world.tasks("train", 2, lambda done, of: None).tasks
        codec = make_codec(config.agent, word_tokenizer([world.benchmark.vocabulary()]), world.benchmark)

        def play(seed, share=0.5):
            chosen = [tasks[0], tasks[0], tasks[1], tasks[1]]
            episodes = demonstrate(
                world.benchmark, chosen, codec, world.pool, share=share, max_steps=25, seed=seed
            )  # fmt: skip
            return [([step.action for step in e.steps], [step.after for step in e.steps], e.won) for e in episodes]

        first = play(0)
        assert play(0) == first != play(1)
        assert first[0] != first[1]  # two rollouts of one task are two players
        assert sum(won for *_, won in play(0, share=1.0)) > sum(won for *_, won in play(0, share=0.0))


@pytest.fixture(scope="module")
def started(commands, tmp_path_factory):
    """A run that makes its own start, and what it printed."""
    folder = tmp_path_factory.mktemp("warm") / "run"
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setattr(warmstart, "tiny", small)
        assert commands.call(train.main, *commands.arguments(folder, iterations=0, **SETTINGS)) == 0
    return folder, out.getvalue()


def test_the_loss_falls_and_the_record_says_how_it_was_made(started):
    folder, out = started
    losses = [float(loss) for loss in re.findall(r"action loss ([\d.]+)", out)]
    assert len(losses) == 4 and losses[-1] < 0.7 * losses[0]
    record = json.loads((folder / "start" / "warmstart.json").read_text())
    run = json.loads((folder / "run.json").read_text())
    assert record["games"] == run["training"]
    assert record["warmstart"]["steps"] == 80
    assert record["warmstart"]["phases"][1] == [0.5, 1.0, 32, "won", 4, 0.01, 0.1]
    wandering, plan = record["demonstrations_won"]
    assert wandering < plan  # in five steps
    assert record["versions"] == versions()
    policy = load_policy(str(folder / "start"))
    assert policy.sha256 == run["weights"] and policy.config.num_layers == 1
    # What was written is what was learnt: every command of the games has words, and ends the answer.
    ids = policy.tokenizer.encode("go to countertop 1 </action>", add_special_tokens=False)
    assert len(ids) == 5 and policy.tokenizer.unk_token_id not in ids and ids[-1] == policy.tokenizer.eos_token_id


def test_it_is_made_once_and_the_same_each_time(started, commands, tmp_path):
    folder, _ = started
    with redirect_stdout(io.StringIO()) as out:
        assert commands.call(train.main, *commands.arguments(folder, iterations=0, **SETTINGS)) == 0
    assert "demonstrations" not in out.getvalue()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()):
        patch.setattr(warmstart, "tiny", small)
        # The command plays 128 episodes at once, so it learns from others than a run of 4 slots.
        one = tmp_path / "one"
        assert commands.call(warmstart.main, *commands.arguments(tmp_path, **SETTINGS), f"--out={one}") == 0
        assert commands.call(train.main, *commands.arguments(tmp_path / "run", iterations=0, **SETTINGS)) == 0
    again, first = (load_policy(str(path / "start")) for path in (tmp_path / "run", folder))
    jax.tree.map(np.testing.assert_array_equal, again.params, first.params)
    command = load_policy(str(one))
    assert command.sha256 != first.sha256 and jax.tree.structure(command.params) == jax.tree.structure(first.params)


def test_a_command_without_a_folder_is_refused(commands, tmp_path, capfd):
    assert commands.call(warmstart.main, *commands.arguments(tmp_path, **SETTINGS)) == 2
    assert "--out is missing" in capfd.readouterr().err
