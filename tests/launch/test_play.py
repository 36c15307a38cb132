"""launch/play.py: episodes whose commands come from a pipe, and what a person is shown."""

import io
import re
import subprocess
import sys
from importlib import import_module

import pytest
from commands import ROOT, Commands
from rich.console import Console

from launch import play, play_view
from trca_jax.envs.alfworld.engine import AlfworldEnv
from trca_jax.envs.base import Task, TaskSet
from trca_jax.envs.webshop import Webshop
from trca_jax.envs.webshop.env import WebshopEnv

pytestmark = pytest.mark.filterwarnings("ignore:the load_module:DeprecationWarning")  # of ml_collections

ROW = re.compile(r" *(\d+) +(\d+)  (.+?)  +(.*?) +([-+.\d]+) +([-+.\d]+) +([-+.\d]+) +([-+.\d]+) +([-+.\d]+) *$")


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    return Commands(None, tmp_path_factory.mktemp("compiled"))


@pytest.fixture
def person(commands, monkeypatch):
    """person(lines, *flags) plays; gives the exit code and all that was shown."""

    def act(lines, *arguments):
        shown = io.StringIO()
        monkeypatch.setattr(play, "console", Console(file=shown, width=220, highlight=False))
        monkeypatch.setattr(sys, "stdin", lines if hasattr(lines, "readline") else io.StringIO("".join(lines)))
        code = commands.call(play.main, *arguments)
        return code, shown.getvalue()

    return act


def rows(shown):
    """(step, context, action, fired items, r_F, r_B, r_TRCA, r_env, return) of the last table."""
    table = shown.rpartition("never fired")[0].rpartition("step  context")[2]
    found = [match.groups() for line in table.splitlines() if (match := ROW.match(line))]
    return [
        (int(t), int(context), action, set(filter(None, fired.split(", "))), *map(float, figures))
        for t, context, action, fired, *figures in found
    ]


SHOP = "--config=configs/webshop.py"
STORY = {
    "search[men's dress shirts cotton heather]": {"kind_listed", "query_formed"},
    "click[b0heather1]": {"kind_opened", "price_confirmed", "option_offered", "attribute_found", "candidate_opened"},
    "click[navy]": {"option_chosen[color: navy]"},
    "click[x-large]": {"option_chosen[size: x-large]", "options_complete"},
    "click[buy now]": {"fitting_bought"},
}


def heather():
    """The split and task of the paper's shirt."""
    for split in ("train", "dev", "test"):
        for task in Webshop().tasks(split):
            goal = task.payload.goal
            if goal.product.asin == "B0HEATHER1" and goal.options == {"color": "navy", "size": "x-large"}:
                return split, task
    raise AssertionError("the generated catalogue has lost the shirt")


def test_the_purchase_that_the_paper_tells_of_pays_one_for_each_item(person):
    """Also checks the returns of the table by hand: G_t = r_env + r_TRCA + 0.95·G_{t+1}."""
    split, task = heather()
    code, shown = person(
        [f"{command}\n" for command in STORY], SHOP, f"--split={split}", f"--task={task.id}",
        "--config.credit.trca.budget_mode=item", "--config.credit.trca.lam=0.5",
        "--config.credit.trca.evidence=1",
    )  # fmt: skip
    assert code == 0 and "won · score 1 · 5 steps" in shown and task.instruction in shown
    table = rows(shown)
    assert [(row[2], row[3]) for row in table] == list(STORY.items())
    assert [row[4:7] for row in table] == [(float(len(fired)),) * 3 for fired in STORY.values()]
    assert [row[1] for row in table] == [1, 2, 3, 4, 5]
    later = 0.0
    for _, _, _, fired, *_, r_env, value in reversed(table):
        later = r_env + len(fired) + 0.95 * later
        assert value == pytest.approx(later, abs=2e-3)
    assert table[-1][7] == 1.0 and "every Evidence and Execution item did" in shown
    assert "one episode has rewards and returns only" in shown
    assert shown.count("return so far") == 5 and "decided in context 2: page results" in shown


def test_commands_by_number_help_and_what_is_not_there(person):
    code, shown = person(
        ["?\n", "999\n", f"{0:050}\n", "\n", "help\n", "2\n", "?\n", "click[nowhere]\n", "QUIT\n"], SHOP
    )
    assert code == 0 and shown.count("There is no command") == 2
    (found, refused) = rows(shown)
    assert found[2].startswith("search[") and f"2 {found[2]}" in shown
    assert refused[2:8] == ("click[nowhere]", {"refused"}, -0.05, 0.0, -0.01, 0.0)
    assert re.search(r" 1 click\[back to search\] +\d+ click", shown)
    assert "A new search names the kind of product" in shown  # the manual's text of an item
    assert "not won · score 0 · 2 steps" in shown


def test_a_command_with_a_blank_asks_for_it(person):
    _, shown = person(["1\n", "Face Creams\n"], SHOP, "--config.env.options.queries=free")
    assert [row[2] for row in rows(shown)] == ["search[face creams]"]


def test_an_answer_that_is_no_action_is_judged_as_an_agents(person):
    _, shown = person(["搜索\n"], SHOP)
    assert rows(shown)[0][2:4] == ("no action", {"unparsed"})


def test_the_step_limit_ends_it(person):
    _, shown = person(["1\n"] * 9, SHOP, "--config.env.max_steps=3")
    assert len(rows(shown)) == 3 and "stopped by the step limit · score 0 · 3 steps" in shown


def test_the_end_of_the_input_and_an_interrupt_show_what_there_is(person):
    code, shown = person([], SHOP)
    assert code == 0 and "no action, no credit" in shown and "0 steps" in shown

    class Interrupted(io.StringIO):
        def readline(self, *_):
            if line := super().readline():
                return line
            raise KeyboardInterrupt

    code, shown = person(Interrupted("1\n"), SHOP)
    assert code == 130 and len(rows(shown)) == 1


def test_on_a_terminal_lines_are_asked_for_with_a_prompt(person, monkeypatch):
    asked = []

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def answer(prompt):
        asked.append(prompt)
        if len(asked) == 3:
            raise EOFError
        return "1"

    monkeypatch.setattr("builtins.input", answer)
    code, shown = person(Terminal(), SHOP)
    assert code == 0 and asked == ["1/15 › ", "2/15 › ", "3/15 › "] and len(rows(shown)) == 2


def test_a_world_that_breaks_is_one_line(person, monkeypatch, capfd):
    monkeypatch.setattr(WebshopEnv, "step", lambda self, action: 1 // 0)
    code, _ = person(["1\n", "1\n"], SHOP)
    assert code == 2
    error = capfd.readouterr().err
    assert error.startswith("error: the episode broke off") and "ZeroDivisionError" in error and error.count("\n") == 1


def test_alfworld_by_the_same_command(person, monkeypatch):
    sent, step = [], AlfworldEnv.step
    monkeypatch.setattr(AlfworldEnv, "step", lambda self, action: sent.append(action) or step(self, action))
    code, shown = person(["2\n", "Dance\n", "inventory\n", "quit\n"], "--config=configs/alfworld.py", "--task=3")
    assert code == 0
    table = rows(shown)
    assert sent == [row[2] for row in table] and sent[1:] == ["dance", "inventory"]
    assert table[1][3:8] == ({"refused"}, -0.05, 0.0, -0.01, 0.0) and "Nothing happens." in shown
    assert "target_seen[first]" in shown and "holding nothing" in shown


TASKS = TaskSet(tuple(Task(f"train/{n}", "boxes", "", "", None) for n in range(40)), "here", "train", "")


def test_a_task_is_chosen_by_id_number_or_seed():
    assert play.choose(TASKS, "train/7", 0).id == "train/7"
    assert play.choose(TASKS, "7", 0).id == play.choose(TASKS, "0" * 20 + "7", 0).id == "train/7"
    drawn = [play.choose(TASKS, None, seed).id for seed in range(6)]
    assert drawn == [play.choose(TASKS, None, seed).id for seed in range(6)] and len(set(drawn)) > 2


@pytest.mark.parametrize("wanted", ["40", "-1", "nothing", "²", "9" * 5000, "0" * 20 + "40"])
def test_a_task_that_there_is_not_is_told(wanted):
    with pytest.raises(ValueError, match="not in split train; expected a number from 0 to 39, or an id such as"):
        play.choose(TASKS, wanted, 0)


def test_flags_that_cannot_be_used(person, capfd):
    assert person([], SHOP, "--split=nowhere")[0] == 2
    assert "'nowhere'" in capfd.readouterr().err


def test_texts_of_the_world_are_shown_as_they_are():
    shown = io.StringIO()
    console = Console(file=shown, width=80, highlight=False)
    text = "[bold]a[/bold] [/] \x1b[31mred\x07 \ud800 naïve\xa0中 [SEP] b\tc"
    console.print(play_view.observed(text))
    assert shown.getvalue().rstrip() == "[bold]a[/bold] [/] \ufffd[31mred\ufffd \ufffd naïve\xa0中 [SEP] b c"
    console.print(play_view.commands(("[red]x", "\x1b[2J", "y" * 60), 80))
    assert "1 [red]x" in shown.getvalue() and "\x1b" not in shown.getvalue()
    console.print(play_view.commands((), 80))
    assert "write any" in shown.getvalue()


def test_a_sign_and_three_digits():
    assert [play_view.number(value) for value in (0.25, -1 / 3, 0.0, -0.0)] == ["+0.250", "-0.333", "0", "0"]


def test_bytes_that_are_no_text_come_through_a_pipe(commands, tmp_path):
    lines = b"\xff\xfe [bold]\x1b[31m\n\xed\xa0\x80\nclick[\x00]\n"
    done = subprocess.run(
        [sys.executable, "launch/play.py", SHOP], cwd=ROOT, input=lines, capture_output=True, timeout=1200
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"3 steps" in done.stdout and b"\x1b" not in done.stdout and b"[bold]" in done.stdout


def test_all_commands_can_be_loaded_together():
    """A flag may be defined once only."""
    names = sorted(path.stem for path in (ROOT / "launch").glob("*.py"))
    assert {"play", "evaluate", "fetch_webshop"} <= set(names)
    for name in names:
        import_module(f"launch.{name}")
