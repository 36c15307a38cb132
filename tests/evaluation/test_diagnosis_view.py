"""What a diagnosis looks like."""

import matplotlib.image
import numpy as np
from rich.console import Console

from trca_jax.evaluation.diagnose import LABELS, SCOPES
from trca_jax.evaluation.diagnosis_view import diagnosis_figure, percent, rollout_table, transition_table


def row(kind, counts, failed=9, rollouts=10):
    labelled = sum(counts)
    share = lambda n: n / labelled if labelled else None  # noqa: E731
    of = dict(zip(LABELS, counts, strict=True)) | {
        "count": labelled + 2, "unlabelled": 2, "useful": share(sum(counts[:3])), "rewarded": share(sum(counts[:2])),
    }  # fmt: skip
    return {
        "kind": kind, "rollouts": rollouts, "failed": failed, "failure_rate": failed / rollouts if rollouts else None,
        "failure_low": 0.6, "failure_high": 0.98, "groups": 2, "success_free": 1, "success_free_rate": 0.5,
        "success_free_low": 0.1, "success_free_high": 0.9, "transitions": dict.fromkeys(SCOPES, of),
    }  # fmt: skip


ROWS = [row("pick_clean_then_place_in_recep", (10, 20, 30, 40)), row("all", (1, 1, 1, 1))]


def text(table):
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    return console.export_text()


def test_rates_stand_beside_their_intervals():
    shown = text(rollout_table(ROWS))
    assert "pick_clean_then_place_in_recep        10  90.0 [60, 98]       2   50.0 [10, 90]" in shown


def test_shares_are_of_the_labelled_transitions():
    shown = text(transition_table(ROWS, "the rubric"))
    line = next(line for line in shown.splitlines() if "failed rollouts" in line)
    assert line.split()[2:] == ["102", "60.0", "10.0", "20.0", "30.0", "40.0"]
    assert sum("success-free groups" in line for line in shown.splitlines()) == 2


def test_a_missing_share_is_a_dash():
    assert percent(None) == "–" and percent(0.125) == "12.5"
    shown = text(transition_table([row("all", (0, 0, 0, 0))], "m"))
    assert next(line for line in shown.splitlines() if "all rollouts" in line).split()[2:] == ["2"] + ["–"] * 5


def test_the_picture_is_written_whole(tmp_path):
    empty = row("all", (0, 0, 0, 0), rollouts=0, failed=0)
    diagnosis_figure(tmp_path / "d.png", [*ROWS[:1], empty])
    assert [path.name for path in tmp_path.iterdir()] == ["d.png"]
    pixels = matplotlib.image.imread(tmp_path / "d.png")[..., :3]
    grey = np.isclose(pixels, 0xBB / 255, atol=0.01).all(axis=2).sum()  # Other, twice as much as Execution
    blue = np.isclose(pixels, [0, 0x72 / 255, 0xB2 / 255], atol=0.01).all(axis=2).sum()
    assert 1.6 < grey / blue < 2.4
