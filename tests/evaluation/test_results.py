"""Results as lines of JSON: what is written is read, and what is damaged is named."""

import json

import pytest

from trca_jax.evaluation.results import KEYS, read_results, write_results

ROW = dict.fromkeys(KEYS, 0) | {"method": "trca", "setting": "λ=0.5", "won": "01-"}


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "results.jsonl"
    write_results(path, [ROW, ROW | {"useful": 0.25}])
    assert read_results(path) == [ROW, ROW | {"useful": 0.25}]
    write_results(path, [])
    assert read_results(path) == [] and [file.name for file in tmp_path.iterdir()] == ["results.jsonl"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps(ROW) + "\n" + json.dumps(ROW)[:40], "line 2 is cut off or damaged"),
        (json.dumps({k: v for k, v in ROW.items() if k != "won"}), "line 1 lacks 'won'"),
        ("[1]", "line 1 is no table"),
        ("\x00\x00", "line 1 is cut off or damaged"),
    ],
)
def test_a_damaged_file_is_refused_with_the_line_and_the_remedy(tmp_path, text, says):
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=says) as caught:
        read_results(path)
    assert str(path) in str(caught.value) and "launch/sweep.py" in str(caught.value)
