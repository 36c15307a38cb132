"""Every notebook runs, and what is stored of it was made from the script beside it."""

import json
import re
import runpy
import sys
from pathlib import Path

import matplotlib
import pytest

from trca_jax.evaluation.efficiency import interval

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def cells_of_script(text: str) -> list[tuple[str, str]]:
    """(kind, source) of the cells of a script in percent format, without its header."""
    body = re.sub(r"\A(# .*\n|#\n)+\n", "", text)
    found = []
    for part in re.split(r"^# %%", body, flags=re.M)[1:]:
        kind, _, source = part.partition("\n")
        if "[markdown]" in kind:
            source = "\n".join(line.removeprefix("#").removeprefix(" ") for line in source.splitlines())
        found.append(("markdown" if "[markdown]" in kind else "code", source.strip()))
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_stored_notebook_is_the_script_with_its_outputs(script):
    notebook = json.loads(script.with_suffix(".ipynb").read_text())
    stored = [(cell["cell_type"], "".join(cell["source"]).strip()) for cell in notebook["cells"]]
    assert stored == cells_of_script(script.read_text()), (
        f"make it anew: jupytext --to ipynb --execute {script.relative_to(FOLDER.parent)}"
    )
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)


def kernels_alone(result):
    assert result["silent"] and result["taken"][0] > 1 > 0 > result["taken"][1]
    punished = {name for (name, penalty), a in result["advantage"].items() if penalty and abs(a).max() > 1}
    assert punished == {"grpo", "gigpo", "graphgpo", "trca"}


def sample_efficiency(result):
    """The figures of the README's study: its table, and how much of GRPO's rollouts TRCA needs."""
    success = {name: [round(100 * x, 1) for x in curve.success] for name, curve in result["found"].items()}
    assert success["trca"] == [4.1, 19.3, 35.6, 43.8, 46.2] and success["grpo"] == [4.1, 14.3, 26.2, 36.1, 36.7]
    assert round(result["figures"]["trca"]["reached"][0] / 2560, 2) == 0.53
    assert all(interval(values)[0] > 0 for values in result["ahead"].values())
    assert result["width"][0, 0] > result["width"][0, 2] > 0


def ablations(result):
    assert list(result["found"]) == [f"λ={lam}" for lam in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert all(curve.won.shape == (2, 6, 32) for curve in result["found"].values())
    r_f = [mean["foundational"] for mean in result["mean"].values()]
    assert r_f[-1] < min(r_f[:-1])  # what is not paid is not gathered


def credit_of_one_episode(result):
    """All eight rollouts fail: only TRCA has something to say, and it says what its formula says."""
    assert not any(episode.won for episode in result["episodes"]) and len(result["episodes"]) == 8
    assert {name for name, a in result["view"].items() if abs(a).max() > 0} == {"trca"}
    assert result["error"] < 1e-4 and len(result["chosen"]) > 20


def new_benchmark(result):
    assert result["lines"] < 200 and 0 < result["won"].sum() < len(result["won"])


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_notebook_runs(script, monkeypatch, capsys):
    matplotlib.use("Agg")
    monkeypatch.setattr(sys, "path", list(sys.path))
    with matplotlib.rc_context():
        globals()[script.stem](runpy.run_path(str(script)))


def test_what_is_recorded_is_small():
    assert sum(path.stat().st_size for path in (FOLDER / "recorded").iterdir()) < 200_000
