"""The display on a terminal, beside one, and when figures are missing or the run is interrupted."""

import io
import re

import pytest
from rich.console import Console

from trca_jax.learner.display import Display, sparkline

METRICS = {
    "iteration": 1, "rollouts": 256, "success": 0.25, "all_failed_groups": 0.5, "useful": 0.125, "valid": 1.0,
    "foundational": 0.4, "breakthrough": 0.25, "steps": 22.5, "failures": 1, "entropy": 0.9, "kl": 0.0031,
    "clip_fraction": 0.04, "grad_norm": 0.8, "items": {"taken[1]": 0.75, "placed": 0.25, "seen": 1.0},
    "seconds": {"collect": 12.0, "judge": 0.1, "credit": 0.0, "pack": 0.1, "update": 8.0, "total": 20.0},
}  # fmt: skip
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def terminal(width=120):
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=40, _environ={})


def shown(console):
    """The last panel as plain text."""
    return CONTROL.sub("", console.file.getvalue()).rsplit("╭", 1)[-1]


def test_sparkline_is_relative_to_the_largest_and_takes_means():
    assert sparkline([0.0, 0.5, 1.0], 10) == "▁▅█"
    assert sparkline([0.0, 0.0, 0.5, 0.5, 0.2, 0.3], 3) == "▁█▅"
    assert len(sparkline([0.1] * 99, 40)) == 40
    assert sparkline([], 5) == "" and sparkline([0.0, 0.0], 5) == "▁▁"


def test_beside_a_terminal_it_is_one_line_an_iteration():
    console = Console(file=io.StringIO(), width=60, _environ={})
    with Display(3, ["trca on alfworld", "240 [sha] tasks"], ["taken[1]"], console) as display:
        display.phase("sampling")
        display.turn(1, 128)
        display.iteration({"iteration": 0, "success": 0.05})
        display.message("saved [bold]step 1")
        display.iteration(METRICS)
    assert console.file.getvalue().splitlines() == [
        "trca on alfworld",
        "240 [sha] tasks",
        "iteration 1/3 | success 5.0%, mean of 5 5.0%, first 5 5.0%",
        "saved [bold]step 1",
        "iteration 2/3 | success 25.0%, mean of 5 15.0%, first 5 15.0% | groups 50% all failed"
        " | transitions 12.5% useful, 100.0% valid | reward r_F 0.40, r_B 0.25 | episode 22.5 steps, 1 failed to run"
        " | policy entropy 0.90, KL 0.0031, clipped 4.0%, gradient 0.80"
        " | seconds 20.0, collect 12.0, judge 0.1, pack 0.1, credit 0.0, update 8.0",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_the_panel_shows_progress_figures_and_the_funnel_in_order(width):
    console = terminal(width)
    with Display(10, ["trca on alfworld"], ["taken[1]", "tooled", "placed"], console) as display:
        display.iteration(METRICS | {"iteration": 0, "success": 0.05})
        display.phase("update")
        display.iteration(METRICS)
        display.phase("evaluation 37/140")
        display.turn(4, 31)
    panel = shown(console)
    assert "iteration 2/10" in panel and "0:02:40 left" in panel  # 8 iterations of 20 s
    assert "25.0%, mean of 5 15.0%, first 5 15.0%" in panel and "▂█" in panel
    assert "evaluation 37/140, turn 4, 31 rollouts playing" in panel
    assert re.search(r"taken\[1\].*75%", panel) and panel.index("taken[1]") < panel.index("placed")
    assert "tooled" not in panel and "seen" not in panel
    assert max(map(len, panel.splitlines())) <= width


def test_means_are_of_the_last_and_of_the_first_five():
    console = terminal()
    with Display(20, ["run"], console=console) as display:
        for i in range(12):
            display.iteration({"iteration": i, "success": (i + 1) / 100})
    assert "12.0%, mean of 5 10.0%, first 5 3.0%" in shown(console)


@pytest.mark.parametrize("missing", [*METRICS, "everything"])
def test_missing_figures_are_left_out(missing):
    some = {} if missing == "everything" else {name: value for name, value in METRICS.items() if name != missing}
    for console in (terminal(), Console(file=io.StringIO(), _environ={})):
        with Display(5, [], ["placed"], console) as display:
            display.iteration(some)
            display.iteration(some | {"success": float("nan")})
            display.iteration(some | {"success": None, "useful": None})


def test_an_interrupt_gives_the_terminal_back():
    console = terminal()
    with pytest.raises(KeyboardInterrupt), Display(5, ["run"], console=console) as display:
        display.phase("sampling")
        raise KeyboardInterrupt
    written = console.file.getvalue()
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")  # the cursor is shown again
    before = len(written)
    display.phase("later")
    assert len(console.file.getvalue()) == before


def test_messages_stand_above_the_panel_and_are_not_markup():
    console = terminal()
    with Display(5, ["run"], console=console) as display:
        display.message("checkpoint [bold]1 written")
    text = CONTROL.sub("", console.file.getvalue())
    assert "checkpoint [bold]1 written" in text
