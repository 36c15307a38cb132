"""What a user can get wrong on the command line, and what is said about it: one line, exit code 2."""

import errno
import json
import os

import pytest
from ml_collections import ConfigDict

from launch import evaluate, train
from launch.command import check_config, run

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections

CASES = {
    "unknown field": (["--config.colour=red"], "no field 'colour'", "configs/common.py"),
    "unknown inner field": (["--config.env.colour=red"], "no field 'colour'", "configs/common.py"),
    "word for a number": (["--config.iterations=many"], "--config.iterations", "'many'"),
    "fraction for a count": (["--config.tasks=1.5"], "--config.tasks", "'1.5'"),
    "unknown method": (["--config.method=guess"], "config.method 'guess'", "trca, grpo"),
    "unknown prompt": (["--config.agent.prompt=poem"], "config.agent.prompt 'poem'", "word, instruct"),
    "unknown decoding": (["--config.agent.decode=beam"], "config.agent.decode 'beam'", "free, admissible"),
    "no tasks": (["--config.tasks=0"], "config.tasks = 0", "at least 1"),
    "negative iterations": (["--config.iterations=-1"], "config.iterations = -1", "at least 0"),
    "no rate": (["--config.ppo.lr=0.0"], "config.ppo.lr = 0.0", "positive"),
    "clip out of range": (["--config.ppo.clip=2.0"], "ppo.clip 2.0", "(0, 1)"),
    "a group of one": (["--config.group_size=1"], "config.group_size = 1", "at least 2"),
    "setting of the method": (["--config.credit.trca.lam=-1.0"], "lam", "-1.0"),
    "no room for an answer": (["--config.agent.max_new=256"], "config.agent.max_new = 256", "longest row, 256"),
    "seed too large": ([f"--config.seed={2**32}"], "config.seed", "2**32"),
    "unknown preset": (
        ["--config=configs/alfworld.py:huge"],
        "preset 'huge'",
        "expected tiny, warmstart or qwen2.5-0.5b, qwen2.5-1.5b",
    ),
    "no config file": (["--config=configs/nowhere.py"], "config file cannot be read", "configs/nowhere.py"),
    "unknown flag": (["--colour=red"], "colour"),
    "stray word": (["colour"], "'colour'", "--config.name=value"),
    "unknown task type": (["--config.env.task_types=('dance',)"], "['dance']", "pick_and_place_simple"),
    "no data": (["--config.env.data=TMP/nowhere"], "nowhere", "no such folder or file"),
    "empty folder": (["--config.env.data=TMP/empty"], "empty", "expected the folder"),
    "broken archive": (["--config.env.data=TMP/broken.jsonl.xz"], "broken.jsonl.xz", "no archive"),
    "broken game": (["--config.env.data=TMP/games", "--config.env.games=1"], "game.tw-pddl", "no ALFWorld game"),
    "no model": (["--config.agent.model=TMP/nowhere"], "nowhere", "give the path"),
    "model without weights": (["--config.agent.model=TMP/hollow"], "model.safetensors", "no such file"),
    "unknown split": (["--config.eval.split=valid_unheard"], "valid_unheard", "valid_seen"),
    "a file in the way": (["--config.workdir=TMP/file/run"], "TMP/file/run", "choose another --config.workdir"),
}


@pytest.fixture(scope="module")
def place(commands, tmp_path_factory):
    """Data and models that are not what they should be."""
    place = tmp_path_factory.mktemp("place")
    (place / "empty").mkdir()
    (place / "file").write_text("")
    (place / "broken.jsonl.xz").write_bytes(b"\xfd7zXZ\0" + bytes(range(100)))
    game = place / "games" / "train" / "pick_and_place_simple-Mug-None-Shelf-1" / "trial_1"
    game.mkdir(parents=True)
    (game / "game.tw-pddl").write_text('{"solvable": true, "pddl_domain": ')
    (place / "hollow").mkdir()
    for name in ("config.json", "tokenizer.json"):
        (place / "hollow" / name).write_bytes((commands.model / name).read_bytes())
    return place


def one_line(text: str) -> str:
    lines = text.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: "), text
    return lines[0]


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_told_in_one_line_and_nothing_is_written(case, commands, place, tmp_path, capfd):
    arguments, *expected = CASES[case]
    small = commands.arguments(tmp_path / "run")
    code = commands.call(train.main, *small, *(argument.replace("TMP", str(place)) for argument in arguments))
    line = one_line(capfd.readouterr().err)
    assert code == 2
    for words in expected:
        assert words.replace("TMP", str(place)) in line
    assert not list(tmp_path.iterdir())


def test_the_same_in_processes_of_their_own(commands, place, tmp_path):
    cases = ("unknown inner field", "unknown preset", "empty folder")
    small = commands.arguments(tmp_path / "run")
    started = {
        case: commands.start("train.py", *small, *(a.replace("TMP", str(place)) for a in CASES[case][0]))
        for case in cases
    }
    for case, process in started.items():
        out, err = process.communicate(timeout=1200)
        line = one_line(err)
        assert process.returncode == 2 and all(words in line for words in CASES[case][1:]), (case, out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "no run.json"), ("", "damaged"), ('{"config": {"seed"', "damaged"), ("[1]", "damaged"), ("{}", "damaged")],
)
def test_a_folder_that_holds_no_run_cannot_be_evaluated(content, expected, commands, tmp_path, capfd):
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    assert commands.call(evaluate.main, f"--run={tmp_path}") == 2
    line = one_line(capfd.readouterr().err)
    assert expected in line and str(tmp_path) in line


@pytest.mark.parametrize(("arguments", "expected"), [([], "--run is missing"), (["--run=x", "--repeats=0"], "repeats")])
def test_flags_of_the_evaluation_are_checked(arguments, expected, commands, capfd):
    assert commands.call(evaluate.main, *arguments) == 2
    assert expected in one_line(capfd.readouterr().err)


def exit_of(main, capfd) -> tuple[int, str]:
    with pytest.raises(SystemExit) as end:
        run(main)
    return end.value.code, capfd.readouterr().err


def fail(error: BaseException):
    raise error


def test_how_a_command_ends(capfd, monkeypatch, tmp_path):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "metrics.jsonl")
    assert exit_of(lambda: 0, capfd) == (0, "")
    assert exit_of(lambda: 130, capfd) == (130, "")
    assert exit_of(lambda: fail(ValueError("seven is odd")), capfd) == (2, "error: seven is odd\n")
    assert exit_of(lambda: fail(full), capfd) == (2, f"error: {full}\n")
    assert exit_of(lambda: fail(KeyboardInterrupt()), capfd) == (130, "stopped\n")
    with pytest.raises(ZeroDivisionError):  # a mistake of the program keeps its traceback
        run(lambda: 1 // 0)


def test_every_config_as_shipped_is_accepted(commands, tmp_path):
    from configs.alfworld import get_config

    for preset in ("tiny", "warmstart"):
        check_config(get_config(preset))
    check_config(ConfigDict(json.loads(get_config().to_json())))  # as it is read from run.json
    check_config(commands.config(tmp_path))
