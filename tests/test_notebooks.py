"""Every notebook runs, and what is stored of it was made from the script beside it."""

import json
import re
import runpy
from pathlib import Path

import matplotlib
import pytest

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


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_notebook_runs(script, monkeypatch, capsys):
    matplotlib.use("Agg")
    result = runpy.run_path(str(script))
    if script.stem == "kernels_alone":
        assert result["silent"] and result["taken"][0] > 1 > 0 > result["taken"][1]
        punished = {name for (name, penalty), a in result["advantage"].items() if penalty and abs(a).max() > 1}
        assert punished == {"grpo", "gigpo", "graphgpo", "trca"}
