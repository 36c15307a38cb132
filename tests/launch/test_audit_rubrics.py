"""What launch/audit_rubrics.py makes of hand-made episodes and of a run's metrics."""

import numpy as np
from boxes import COMMANDS, task
from fake_world import World

from launch.audit_rubrics import activation, hacking, tables
from trca_jax.rollout.episode import Episode, Step
from trca_jax.rubrics.language import Judge

BLANK = np.zeros(0, np.int32)
ROOM, TIME = "you see box 1 box 2 box 3 .", "time goes by ."
RED, BLUE = "you open box 1 . it is red .", "you open box 2 . it is blue ."
JUDGE = Judge(World().library)


def episode(*moves, goal="red", won=False):
    steps = [Step(BLANK, BLANK, BLANK, None, action, (0, 0), ROOM, COMMANDS, after) for action, after in moves]
    return Episode(task(goal, goal), 0, "append", ROOM, steps, won=won)


def test_hand_made_episodes():
    """Six transitions; the reader of boxes forgets nothing, so opening a box again changes nothing."""
    episodes = [
        episode(("open 2", BLUE), ("open 1", RED), won=True),
        episode(("open 2", BLUE), ("open 2", BLUE), ("wait", TIME), ("wait", TIME)),
    ]
    record = activation(episodes, World(), JUDGE)
    assert (record["episodes"], record["won"], record["transitions"], record["silent"]) == (2, 1, 6, 3)
    rows = {row["item"]: row for row in record["operators"]}
    look, goal = rows["first_look"], rows["goal_opened"]
    assert (look["transitions_failed"], look["transitions_won"], look["transitions_all"]) == (0.25, 1.0, 0.5)
    assert (goal["rollouts_failed"], goal["rollouts_won"], goal["won_if_fired"], goal["won_if_not"]) == (0, 1, 1, 0)
    assert goal["phi"] == 1 and look["phi"] is None and look["category"] == "evidence"
    assert [name for name, row in rows.items() if row["never"]] == ["unparsed", "refused"]
    assert not any(row["always"] or row["unbound"] for row in rows.values())
    pair = next(p for p in record["pairs"] if p["items"] == ["first_look", "goal_opened"])
    assert pair["jaccard"] == 1 / 3
    assert record["blind_spots"] == []


def test_a_change_that_nothing_pays_for_is_a_blind_spot():
    class Mute(World):
        def adapter(self, task, first_observation):
            adapter = super().adapter(task, first_observation)
            real = adapter.transition
            adapter.transition = lambda *a: {**real(*a), "opened": "nothing"}
            return adapter

    moves = [("open 2", BLUE), ("wait", TIME), ("open 1", RED)]
    (spot,) = activation([episode(*moves), episode(*moves, won=True)], Mute(), JUDGE)["blind_spots"]
    assert (spot["template"], spot["count"], spot["of"], spot["won"]) == ("open {number}", 4, 4, 0.5)
    assert spot["changes"] == {"opened": 4} and (spot["action"], spot["answer"]) == ("open 2", BLUE)


def metrics(look, success, refused=None):
    return [
        {
            "kind": "train", "success": s,
            "items": {"first_look": x, "unparsed": 0.0, "refused": r, "goal_opened": s},
        }
        for x, s, r in zip(look, success, refused or look, strict=True)
    ]  # fmt: skip


RISE = [0.1, 0.2, 0.2, 0.3, 0.5, 0.6, 0.7, 0.9]
FLAT = [0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, 0.2]


def test_a_rate_that_rises_alone_is_a_sign():
    (whole, half) = hacking(metrics(RISE, FLAT), JUDGE)
    assert whole["item"] == half["item"] == "first_look"  # more refusals are no hacking
    assert whole["iterations"] == [0, 8] and half["iterations"] == [4, 8]
    assert whole["rate"] == [0.1, 0.9] and whole["success"] == [0.1, 0.2]
    assert whole["trend"] > 2 > whole["success_trend"]
    assert hacking(metrics(RISE, RISE), JUDGE) == [] and hacking(metrics(FLAT, FLAT), JUDGE) == []
    assert hacking(metrics(RISE[:7], FLAT[:7]), JUDGE) is None
    evaluations = [{"kind": "eval", "iteration": n} for n in range(9)]
    assert hacking(evaluations, JUDGE) is None


def test_a_stall_of_the_later_half_is_a_sign():
    success = [0.1, 0.2, 0.3, 0.5, 0.6, 0.6, 0.6, 0.6]
    (sign,) = hacking(metrics(RISE, success), JUDGE)
    assert sign["iterations"] == [4, 8] and sign["success"] == [0.6, 0.6]


def test_what_is_printed():
    record = activation([episode(("open 1", RED), won=True), episode(("wait", TIME))], World(), JUDGE)
    lines = [t for t in tables(record | {"hacking": hacking(metrics(RISE, FLAT), JUDGE)}) if isinstance(t, str)]
    assert "Never fires: unparsed, refused" in lines and "Fires always: none" in lines
    assert any("first_look and goal_opened 1.00" in line for line in lines)
    assert any("first_look rises from 0.10 to 0.90 (t " in line for line in lines)
    assert "Signs of reward hacking: none" in tables(record | {"hacking": []})
