"""A run's policy as a Hugging Face folder: the same weights and tokenizer, for us and for transformers."""

import io
import json
from contextlib import redirect_stdout

import numpy as np
import pytest

from launch import evaluate, export_hf, train
from trca_jax.policy.load import load_policy
from trca_jax.policy.qwen2 import Qwen2, output_embedding

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections


@pytest.fixture(scope="module")
def exported(commands, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    with redirect_stdout(io.StringIO()):
        assert commands.call(train.main, *commands.arguments(folder / "run", iterations=2)) == 0
        assert commands.call(export_hf.main, f"--run={folder / 'run'}", f"--out={folder / 'model'}") == 0
    return folder / "run", folder / "model"


def test_the_folder_is_a_model_like_any_other(exported, commands, capsys):
    run, model = exported
    policy = load_policy(str(model))
    for a, b in zip(commands.policy(run), commands.leaves(policy.params), strict=True):
        np.testing.assert_array_equal(a, b)
    start = load_policy(str(commands.model))
    assert policy.tokenizer.get_vocab() == start.tokenizer.get_vocab()
    assert any(
        (a != b).any() for a, b in zip(commands.leaves(policy.params), commands.leaves(start.params), strict=True)
    )
    plain = model.parent / "plain"
    assert commands.call(evaluate.main, *commands.arguments(plain, agent__model=str(model))) == 0
    assert "held out after 0 iterations" in capsys.readouterr().out
    # The same policy, tasks and keys as at the end of the run.
    ours, theirs = (
        path.read_text().split('"results"')[1] for path in (plain / "evaluation-0.json", run / "evaluation-2.json")
    )
    assert ours == theirs


def test_transformers_loads_it_whole_and_computes_the_same(exported):
    torch = pytest.importorskip("torch", reason="torch is not installed: the export was not loaded by transformers")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    policy = load_policy(str(exported[1]))
    model, info = AutoModelForCausalLM.from_pretrained(exported[1], output_loading_info=True, dtype=torch.float32)
    assert {name: list(found) for name, found in info.items() if found} == {}
    ids = policy.tokenizer.encode("go to shelf 1 take mug 1 from shelf 1", add_special_tokens=False)
    assert len(AutoTokenizer.from_pretrained(exported[1])) == len(policy.tokenizer)
    with torch.no_grad():
        expected = model(torch.tensor([ids])).logits[0].numpy()
    hidden, _ = Qwen2(policy.config).apply({"params": policy.params}, np.array([ids]), np.arange(len(ids))[None])
    found = np.asarray(hidden[0]) @ np.asarray(output_embedding(policy.config, policy.params)).T
    np.testing.assert_allclose(found, expected, atol=5e-5)


def test_nothing_is_overwritten_and_flags_are_needed(exported, commands, capfd):
    run, model = exported
    for arguments, expected in (
        ([f"--run={run}", f"--out={model}"], "is not an empty folder"),
        ([f"--run={run}"], "--out is missing"),
        ([f"--out={model}"], "--run is missing"),
        (["--run=nowhere", "--out=x"], "is no run folder"),
    ):
        assert commands.call(export_hf.main, *arguments) == 2
        assert expected in capfd.readouterr().err


def test_half_precision_and_the_end_token_stand_in_the_config(exported, commands, tmp_path, capsys):
    run, model = exported
    assert commands.call(export_hf.main, f"--run={run}", f"--out={tmp_path}", "--dtype=bfloat16") == 0
    assert "(bfloat16)" in capsys.readouterr().out
    half, full = load_policy(str(tmp_path)), load_policy(str(model))
    for a, b in zip(commands.leaves(half.params), commands.leaves(full.params), strict=True):
        np.testing.assert_array_equal(a, b.astype("bfloat16").astype("float32"))
    for folder, dtype in ((tmp_path, "bfloat16"), (model, "float32")):
        content = json.loads((folder / "config.json").read_text())
        # Without the end token `generate` of transformers would never stop.
        assert (content["torch_dtype"], content["eos_token_id"]) == (dtype, full.tokenizer.eos_token_id)


def test_a_run_that_cannot_be_what_it_says_is_not_exported(exported, commands, tmp_path, capfd):
    record = json.loads((exported[0] / "run.json").read_text())
    for content, expected in ((record, "has no checkpoint yet"), ({**record, "weights": "00"}, "put back the model")):
        (tmp_path / "run.json").write_text(json.dumps(content))
        assert commands.call(export_hf.main, f"--run={tmp_path}", f"--out={tmp_path / 'out'}") == 2
        (line,) = capfd.readouterr().err.splitlines()
        assert expected in line and not (tmp_path / "out").exists()
