"""run.json: what a run depends on, and what may differ when it goes on."""

import json
import os
import stat

import pytest

from configs.alfworld import get_config
from trca_jax.learner.record import open_run, read_run, versions, write_json

FACTS = {"training": {"tasks": 2, "sha256": "aa"}, "evaluation": {"tasks": 2, "sha256": "bb"}, "weights": "cc"}


def test_the_record_holds_the_whole_config_and_what_was_used(tmp_path):
    config = get_config()
    config.env.task_types = ("pick_two_obj_and_place",)
    open_run(tmp_path / "new" / "run", config, FACTS)
    record = read_run(tmp_path / "new" / "run")
    assert record["config"]["ppo"]["lr"] == config.ppo.lr and record["config"]["seed"] == 0
    assert record["config"]["env"]["task_types"] == ["pick_two_obj_and_place"]
    assert {name: record[name] for name in FACTS} == FACTS
    assert record["versions"] == versions() and record["versions"]["alfworld"] != "absent"
    assert [path.name for path in (tmp_path / "new" / "run").iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("iterations", 99), ("workdir", "elsewhere"), ("checkpoint.every", 3), ("eval.games", 7), ("env.workers", 3),
     ("env.deadline_s", 5.0)],
)  # fmt: skip
def test_a_run_may_go_on_with(field, value, tmp_path):
    config = get_config()
    open_run(tmp_path, config, FACTS)
    config.update_from_flattened_dict({field: value})
    open_run(tmp_path, config, {**FACTS, "evaluation": {"tasks": 7, "sha256": "dd"}})
    section, _, last = field.rpartition(".")
    found = read_run(tmp_path)["config"]
    assert (found[section] if section else found)[last] == value


@pytest.mark.parametrize(
    ("field", "value"),
    [("seed", 1), ("method", "grpo"), ("tasks", 3), ("env.seed", 1), ("env.data", "elsewhere"), ("ppo.kl", 0.5),
     ("credit.trca.lam", 0.5), ("agent.decode", "free"), ("agent.buckets.chunk", (32,)), ("warmstart.steps", 5)],
)  # fmt: skip
def test_a_run_may_not_go_on_with(field, value, tmp_path):
    config = get_config()
    open_run(tmp_path, config, FACTS)
    before = (tmp_path / "run.json").read_bytes()
    config.update_from_flattened_dict({field: value})
    shown = list(value) if isinstance(value, tuple) else value
    with pytest.raises(ValueError, match="use another") as error:
        open_run(tmp_path, config, FACTS)
    assert f"config.{field} = " in str(error.value) and repr(shown) in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert (tmp_path / "run.json").read_bytes() == before


@pytest.mark.parametrize(("name", "fact"), [("training.sha256", {"training": {"sha256": "zz"}}),
                                            ("weights", {"weights": "zz"})])  # fmt: skip
def test_other_games_or_weights_are_another_run(name, fact, tmp_path):
    open_run(tmp_path, get_config(), FACTS)
    with pytest.raises(ValueError, match=f"holds a run with {name} = '..', but this one has 'zz'"):
        open_run(tmp_path, get_config(), {**FACTS, **fact})


def test_versions_may_differ_and_the_last_ones_are_recorded(tmp_path):
    open_run(tmp_path, get_config(), FACTS)
    record = read_run(tmp_path)
    record["versions"]["jax"] = "0.0.1"
    write_json(tmp_path / "run.json", record)
    open_run(tmp_path, get_config(), FACTS)
    assert read_run(tmp_path)["versions"] == versions()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write the run folder .*file/run .*choose another --config\.workdir"):
        open_run(tmp_path / "file" / "run", get_config(), FACTS)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "some.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}

    def fail(*_):
        raise OSError("no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1} and path.stat().st_mode & stat.S_IRUSR
