"""The page as a text: it holds what it should, loads nothing, and no text of an episode can end its data."""

import hashlib
import json
import re
from base64 import b64encode

import pytest
from box_episodes import episode, open_red, played, wait
from fake_world import World

from trca_jax.evaluation.page import Item, page
from trca_jax.evaluation.timeline import timeline

EVIL = "</script><img src=x onerror=alert(1)><!-- & \u2028 \ud800"


def result(kind, won, steps=5):
    return {"task": f"{kind}{steps}", "kind": kind, "won": won, "score": float(won), "steps": steps, "failure": None}


def evaluation(iteration, *results):
    won, n = sum(r["won"] for r in results), len(results)
    return {"iteration": iteration, "rollouts": 8 * iteration, "success": won / n, "low": 0.1, "high": 0.7,
            "episodes": n, "split": "unseen", "results": list(results)}  # fmt: skip


TRAIN = [
    {"rollouts": 8 * (i + 1), "success": 0.1 * i, "useful": 0.2 + 0.1 * i, "useful_failed": 0.1,
     "all_failed_groups": 1 - 0.25 * i, "items": {"first_look": 0.4 + 0.1 * i}}
    for i in range(3)
]  # fmt: skip
HELD_OUT = [
    evaluation(0, result("pick_and_place", False), result("heat", False)),
    evaluation(3, result("pick_and_place", True, 4), result("heat", False)),
]
ITEMS = [
    Item("first_look", "evidence", "accepted and opened != 'nothing'", "A box is opened.", [0.4, 0.5, 0.6]),
    Item("unparsed", "invalidity", "not parsed", "No action.", []),
]


def make(episodes=(), train=TRAIN, held_out=HELD_OUT, notes=()):
    data = timeline([played(episodes)] if episodes else [], World(), 10**6)
    return page("boxes <&> trca", {"run": "a<b"}, notes, train, held_out, ITEMS, data)


@pytest.fixture(scope="module")
def text():
    evil = episode(("open 1", EVIL, 1.0, f"<think>{EVIL}</think><action>open 1</action>"), won=True)
    return make([evil, wait()], notes=["Mind the <gap>."])


def test_texts_of_episodes_cannot_leave_the_data(text):
    assert text.count("<img") == 0 and len(re.findall("</script", text)) == text.count("<script") == 2
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert EVIL in data["texts"] and [item["name"] for item in data["items"]] == ["first_look", "unparsed"]
    text.encode("utf-8")


def test_only_its_own_script_and_style_may_run_and_nothing_is_loaded(text):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    for tag in ("style", "script"):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[-1]
        digest = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert set(re.findall(r"https?://[^'\"\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"<[^>]+\s(src|href|style|on\w+)=", text) and "url(" not in text and "@import" not in text


def test_the_head_of_the_page_says_what_was_reached(text):
    body = re.sub(r"<[^>]+>", "", text[text.index("<body") : text.index("<script")])
    assert "boxes &lt;&amp;&gt; trca" in body and "a&lt;b" in body and "Mind the &lt;gap&gt;." in body
    assert "50.0%from 0.0% on 2 held-out episodes; 95% interval 10.0% – 70.0%" in body
    assert "useful transitions40%from 20%" in body and "groups without a success50%from 100%" in body
    assert "sampled rollouts24in 3 iterations" in body


def test_task_types_before_and_after(text):
    rows = re.findall(r"<tr class=.*?</tr>", text, re.DOTALL)
    cells = [re.sub(r"<[^>]+>", "|", row) for row in rows]
    assert [re.sub(r"\|+", "|", row) for row in cells] == [
        "|heat|1|0.0| |0–79|0.0| |0–79|–|", "|pick_|and_|place|1|0.0| |0–79|100.0| |21–100|4.0|",
        "|all|2|0.0| |0–66|50.0| |9–91|4.0|",
    ]  # fmt: skip
    assert "after 3 iterations" in text and text.count("<wbr>") == 2


def test_the_rubric_shows_the_items_that_were_bound(text):
    rubric = text[text.index('id="rubric"') : text.index('id="episodes"')]
    assert "accepted and opened != 'nothing'" in rubric and "40% → 60%" in rubric and "unparsed" not in rubric


def test_a_page_of_parts_is_made_too():
    bare = make(train=(), held_out=HELD_OUT[:1])
    assert "Learning curves" not in bare and ">start<" in bare and "The run folder holds no episodes." in bare
    assert "Task types" not in make([open_red()], train=TRAIN[:1], held_out=())
