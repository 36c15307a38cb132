"""Slots that step together: one request for all of their queries, and the same episodes as one by one."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from retrieval_servers import DROP, STALL, RetrievalServer, serving
from searchqa_worlds import answer, search, task

from trca_jax.envs.pool import EnvPool
from trca_jax.envs.searchqa import Searchqa
from trca_jax.envs.searchqa.http import HttpRetriever
from trca_jax.envs.searchqa.retrieval import RetrievalError

ASKED = task("Who made Trap?", "gold")


@pytest.fixture
def server(monkeypatch):
    with serving(RetrievalServer()) as server:
        engine = HttpRetriever((server.url,), tries=2, wait_s=0.001, read_s=1.0)
        engine.check()
        server.requests.clear()
        monkeypatch.setattr("trca_jax.envs.searchqa.env.retriever", lambda source, name: engine)
        yield server


def started(slots, **settings):
    pool = EnvPool(Searchqa(**settings).make_env, slots=slots, workers=0)
    pool.reset(range(slots), [ASKED] * slots)
    pool.receive(range(slots))
    return pool


def step(pool, actions, slots=None):
    slots = range(len(actions)) if slots is None else slots
    pool.step(slots, actions)
    return pool.receive(slots)


def test_a_step_of_64_slots_is_one_request(server):
    server.delay_s = 0.05
    pool = started(64)
    begin = time.monotonic()
    step(pool, [search(f"q{slot % 40}") for slot in range(64)])
    assert time.monotonic() - begin < 1.5  # one by one it takes 2 s at least
    assert [body["queries"] for body in server.requests] == [[f"q{n}" for n in range(40)]]
    step(pool, [search(f"r{slot}") for slot in range(64)])
    assert [len(body["queries"]) for body in server.requests] == [40, 64]


def test_a_request_holds_256_queries(server):
    pool = started(300)
    step(pool, [search(f"q{slot % 256}") for slot in range(300)])
    assert len(server.requests) == 1
    step(pool, [search(f"r{slot % 257}") for slot in range(300)])
    assert sorted(len(body["queries"]) for body in server.requests[1:]) == [1, 256]


def test_what_is_not_searched_is_not_asked_for(server):
    actions = [search("a"), answer("gold"), search(""), "no action", search(" "), search("x" * 3000), search("last")]
    pool = started(7, limit=3)
    for text in "bc":
        step(pool, [search(text)], [6])
    server.requests.clear()
    seen = step(pool, actions)
    assert [body["queries"] for body in server.requests] == [["a", "x" * 2000]]
    assert [s.done for s in seen] == [False, True, False, False, False, False, True]
    step(pool, [search("after the end")], [1])
    assert len(server.requests) == 1


@pytest.mark.parametrize("protocol", ["verl-agent", "search-r1"])
def test_episodes_are_those_played_one_by_one(server, protocol):
    actions = [search("ada"), search("nothing"), search("ada"), answer("gold"), "", search(""), search("poison")]
    together, alone = (started(7, protocol=protocol) for _ in range(2))
    for _ in range(3):
        seen = step(together, actions)
        expected = [step(alone, [action], [slot])[0] for slot, action in enumerate(actions)]
        assert seen[:6] == expected[:6]
        assert seen[6].failure and expected[6].failure
        actions = actions[1:6] + actions[:1] + actions[6:]


def test_the_query_that_a_server_fails_at_fails_alone(server):
    pool = started(9)
    seen = step(pool, [search("poison" if slot == 4 else f"q{slot}") for slot in range(9)])
    assert [slot for slot in range(9) if seen[slot].failure] == [4]
    assert "the last of 2 tries: status 500" in seen[4].failure
    assert [len(body["queries"]) for body in server.requests] == [9, 9, *[1] * 9]


@pytest.mark.parametrize("trouble", [500, b"not json", b'{"result": []}', DROP, STALL])
def test_an_outage_fails_what_searched_and_passes(server, trouble):
    pool = started(40)
    actions = [answer("gold") if slot == 0 else search(f"{slot}") for slot in range(40)]
    server.trouble.append(trouble)
    assert not any(s.failure for s in step(pool, actions))  # the second try
    pool = started(40)
    server.trouble.extend([trouble] * 5)
    server.requests.clear()
    seen = step(pool, [action.replace("<search>", "<search>again ") for action in actions])
    assert len(server.requests) == (2 if trouble in (DROP, STALL) else 4)
    assert seen[0].won and not seen[0].failure
    assert all(s.failure.startswith("no search: ") and s.text == "" for s in seen[1:])
    server.trouble.clear()
    pool.reset([7], [ASKED])
    pool.receive([7])
    assert not step(pool, [search("again 7")], [7])[0].failure


def test_a_wrong_setting_fails_what_searched(server):
    server.trouble.extend([401] * 3)
    seen = step(started(4), [search("a"), answer("gold"), search("b"), search("c")])
    assert [s.failure is None for s in seen] == [False, True, False, True]  # asked together, then each alone
    assert "status 401" in seen[0].failure


def test_an_outage_of_a_server_of_single_queries_takes_as_long_as_one_request():
    with serving(RetrievalServer("query")) as server:
        engine = HttpRetriever((server.url,), tries=3, wait_s=0.001)
        engine.check()
        server.requests.clear()
        server.trouble.extend([503] * 10_000)
        found = engine.search([f"q{n}" for n in range(200)], 1)
        assert all(isinstance(entry, RetrievalError) for entry in found) and len(server.requests) < 3 * 32
        server.trouble.clear()
        assert all(isinstance(entry, list) for entry in engine.search([f"q{n}" for n in range(200)], 1))


def test_slots_of_a_worker_process_ask_together():
    with serving(RetrievalServer()) as server:
        benchmark = Searchqa(retriever=server.url)
        with EnvPool(benchmark.make_env, slots=8, workers=1) as pool, ThreadPoolExecutor(1) as later:
            pool.reset(range(8), benchmark.tasks("test", 8).tasks)
            pool.receive(range(8))
            seen = later.submit(step, pool, [search(f"q{slot}") for slot in range(8)]).result(60)
        assert [s.failure for s in seen] == [None] * 8
        assert [len(body["queries"]) for body in server.requests] == [1, 8]  # the first asks whether it is there
        assert all(json.loads(s.text[13:-14])["result"].startswith(f'Doc 1: "T0 q{n}"') for n, s in enumerate(seen))
