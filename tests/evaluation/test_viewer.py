"""The viewer in a browser: what a step shows, keys and addresses, markup as text, a phone's width, contrast."""

import json
import re

import pytest
from box_episodes import BLUE, NOTHING, RED, TIME, episode, open_red, played, wait
from browser import CHROMIUM, Browser
from fake_world import World

from trca_jax.evaluation.page import Item, page
from trca_jax.evaluation.timeline import timeline

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="chromium is not installed; the viewer was not tried")
EVIL = "<img src=x onerror=\"document.title='owned'\"></p></script><script>document.title='owned'</script>"
LIBRARY = World().library
ITEMS = [Item(o.name, o.category, o.when, o.doc, [0.5]) for o in LIBRARY.operators]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture(scope="module")
def file():
    said = f"<think>Perhaps {EVIL}</think><action>open 1</action>"
    return played([
        wait(2, group=0), wait(1, group=0),
        episode(("wait", TIME, -0.5, ""), (None, NOTHING, 0.0, f"I say {EVIL}"), ("open 2", BLUE, 0.0, ""), group=1),
        episode(("open 2", BLUE, 0.0, ""), ("open 1", f"{RED} {EVIL}", 1.0, said), group=1, won=True),
        episode(("wait", TIME, -0.5, ""), ("open 2", BLUE, 0.0, ""), group=1, truncated=True),
        wait(group=1, failure="worker died"),
    ])  # fmt: skip


@pytest.fixture(scope="module")
def address(file, tmp_path_factory):
    data = timeline([file, played([open_red()], "evaluation-3", method=None)], World(), 10**6)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page("boxes", {}, [], [], [], ITEMS, data), "utf-8")
    return path.as_uri()


@pytest.fixture
def shown(browser, address):
    """show(hash): loads the page at a laptop's size and gives back the browser."""

    def show(place="", **size):
        browser.complaints.clear()
        browser.look(**{"width": 1280, **size})
        browser.open(address + place)
        return browser

    yield show
    assert browser.complaints == [] and browser.requests == [browser.ask("location.href.split('#')[0]")]
    assert browser.ask("document.title") == "boxes"


def text(browser, selector):
    return browser.ask(f"document.querySelector({json.dumps(selector)}).innerText")


def place(browser):
    return browser.ask("location.hash")


def test_it_begins_where_some_won_and_some_lost(shown):
    browser = shown()
    assert place(browser) == "#rollouts-0/1/2/1"
    assert "Rollout 2 of 4: won, 2 steps" in text(browser, "article header")
    assert browser.ask(
        "[...document.querySelectorAll('.group')].map((g) => g.innerText.split('\\n').filter(Boolean))"
    ) == [
        ["open the red box", "0 of 2 won"],
        ["open the red box", "1 of 4 won"],
    ]


def test_a_step_shows_what_was_seen_said_fired_and_earned(shown, file):
    browser = shown("#rollouts-0/1/2/2")
    assert text(browser, ".open .action") == "open 1"
    assert text(browser, ".open > .answer") == f"{RED} {EVIL}"
    assert text(browser, ".open blockquote") == f"thought\nPerhaps {EVIL}"
    fired = text(browser, ".open .fired")
    for operator in (LIBRARY.operators[0], LIBRARY.operators[3]):
        assert {operator.name, operator.when, operator.doc} <= set(re.split(r"\n+| (?=evidence|execution)", fired))
    figures = dict(zip(*(browser.ask(f"[...document.querySelectorAll('.open {part}')].map((x) => x.innerText)")
                         for part in ("dt", "dd")), strict=True))  # fmt: skip
    figures = {re.sub(r"\s", "", name): value for name, value in figures.items()}
    c = file.credit
    expected = {"rFfoundational": c.foundational[3, 1], "rBbreakthrough": c.breakthrough[3, 1], "renvenvironment": 1.0,
                "Greturn": c.returns[3, 1], "AEoftherollout": c.episode[3], "ASofthestep": c.step[3, 1],
                "Aadvantage": c.advantage[3, 1]}  # fmt: skip
    assert figures == {
        name: f"{value:+.2f}".replace("-", "−").replace("+0.00", "0.00") for name, value in expected.items()
    }
    assert browser.ask("document.querySelectorAll('article img, article script').length") == 0


def test_an_answer_without_an_action_is_shown_whole(shown):
    browser = shown("#rollouts-0/1/1/2")
    assert text(browser, ".open .action") == "no action could be read"
    assert text(browser, ".open blockquote") == f"what it said\nI say {EVIL}"


def test_siblings_of_a_context_are_counted_by_action_and_led_to(shown, file):
    """Before anything was opened there are three steps of the first rollout, one of the second, two of the third."""
    browser = shown("#rollouts-0/1/2/1")
    assert "opened none — 6 steps of 3 rollouts" in text(browser, ".siblings")
    rows = "[...document.querySelectorAll('.siblings tbody tr')].map((r) => [...r.children].map((c) => c.innerText))"
    found = {row[0]: row for row in browser.ask(rows)}
    assert set(found) == {"open 2", "wait", "(no action)"}
    g = file.credit.returns
    assert found["open 2"][1] == f"{(g[2, 2] + g[3, 0] + g[4, 1]) / 3:+.2f}" and found["open 2"][3].split() == [
        "1·3",
        "2·1",
        "3·2",
    ]
    means = [float(row[1].replace("−", "-")) for row in found.values()]
    assert means == sorted(means, reverse=True)
    assert text(browser, ".siblings .own th") == "open 2"
    browser.ask("[...document.querySelectorAll('.siblings .own .link')].at(-1).click()")
    assert place(browser) == "#rollouts-0/1/3/2"


def test_keys_lead_through_steps_rollouts_and_groups(shown):
    browser = shown()
    places = []
    for key in ("j", "j", "k", "]", "[", "[", "j", "j", "j", "{", "}", "]", "]", "]", "]"):
        browser.press(key)
        places.append(place(browser).removeprefix("#rollouts-0/"))
    assert places == [
        "1/2/2", "1/2/2", "1/2/1", "1/3/1", "1/2/1", "1/1/1", "1/1/2", "1/1/3", "1/1/3", "0/1/1", "1/1/1", "1/2/1",
        "1/3/1", "1/4/1", "1/4/1",
    ]  # fmt: skip
    assert "the infrastructure failed: worker died" in text(browser, "article header")


def test_arrows_move_inside_the_viewer_and_scroll_the_page_outside(shown):
    browser = shown("#rollouts-0/1/1")
    browser.press("ArrowDown", "ArrowRight")
    assert place(browser) == "#rollouts-0/1/1/1"
    browser.ask("document.querySelector('.open .row').focus()")
    browser.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert place(browser) == "#rollouts-0/1/1/2"
    assert browser.ask("document.activeElement.closest('.open') !== null")
    browser.press("ArrowRight")
    assert place(browser) == "#rollouts-0/1/2/1"
    browser.ask("document.querySelector('.rollout').focus()")
    browser.press("Enter", "ArrowRight")
    assert place(browser) == "#rollouts-0/1/2/1"
    browser.ask("document.querySelector('select').focus()")
    browser.press("j")
    assert place(browser) == "#rollouts-0/1/2/1"


def test_addresses_are_followed_and_bad_ones_do_no_harm(shown):
    browser = shown("#evaluation-3/0/1/1")
    assert text(browser, ".open .action") == "open 1" and "Rollout 1 of 1: won" in text(browser, "article header")
    assert browser.ask("document.querySelectorAll('.numbers, .strip').length") == 0  # no credit
    assert "1 step of 1 rollout" in text(browser, ".siblings")
    browser.ask("location.hash = '#rollouts-0/1/3/99'")
    browser.ask("new Promise((done) => setTimeout(done, 50))")
    assert place(browser) == "#rollouts-0/1/3/2"
    for bad in ("#nothing", "#rollouts-0/77/1", "#rollouts-0/1/x/-5", "#%E0%A4", "#//"):
        assert place(shown(bad)).startswith("#rollouts-0/1/"), bad


def test_a_file_can_be_chosen(shown):
    browser = shown()
    browser.ask("const s = document.querySelector('select'); s.value = 1; s.dispatchEvent(new Event('change'))")
    assert place(browser) == "#evaluation-3/0/1/1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen_and_letters_stand_out(shown, scheme, width):
    """Contrast of at least 4.5 between each text's colour and what lies behind it (WCAG AA)."""
    browser = shown("#rollouts-0/1/2/2", width=width, height=844, scheme=scheme, touch=width == 390)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("Math.min(...[...document.querySelectorAll('.row, .group, .rollout, select')]"
                       ".map((b) => b.getBoundingClientRect().height))") >= (40 if width == 390 else 24)  # fmt: skip
    pairs = browser.ask("""[...document.querySelectorAll('body *')].filter((e) => e.innerText &&
        [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
          let b = e;
          while (getComputedStyle(b).backgroundColor === 'rgba(0, 0, 0, 0)') b = b.parentElement;
          return [getComputedStyle(e).color, getComputedStyle(b).backgroundColor, e.innerText.slice(0, 30)];
        })""")
    assert len(pairs) > 30
    for colour, behind, what in pairs:
        assert contrast(colour, behind) >= 4.5, (colour, behind, what)


def contrast(*colours):
    light = []
    for colour in colours:
        channels = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels]
        light.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(light) + 0.05) / (min(light) + 0.05)
