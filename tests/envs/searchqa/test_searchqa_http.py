"""The HTTP client against a local server that stalls, breaks, answers nonsense, and comes back."""

import json

import pytest
from retrieval_servers import DROP, STALL, RetrievalServer, serving, trickling

from trca_jax.envs.searchqa.http import HttpRetriever
from trca_jax.envs.searchqa.retrieval import Passage, RetrievalError


@pytest.fixture(params=["queries", "query"])
def server(request):
    with serving(RetrievalServer(request.param)) as server:
        yield server


def client(*urls, **changes):
    return HttpRetriever(urls, **{"connect_s": 2.0, "read_s": 5.0, "wait_s": 0.001} | changes)


def asked(server):
    """The queries that reached the server, without the one that found out the schema in vain."""
    return [q for body in server.requests if server.schema in body for q in _queries(body)]


def _queries(body):
    return body["queries"] if "queries" in body else [body["query"]]


def test_passages_of_both_kinds_of_servers(server):
    found = client(server.url).search(["ada", "nothing", "king"], 2)
    assert found == [
        [Passage("ada-0", "T0 ada", "about ada", 9.0), Passage("ada-1", "T1 ada", "about ada", 8.0)],
        [],
        [Passage("king-0", "T0 king", "about king", 9.0), Passage("king-1", "T1 king", "about king", 8.0)],
    ]
    assert all(body["return_scores"] is True and body["topk"] == 2 for body in server.requests)


def test_the_schema_is_found_out_once(server):
    engine = client(server.url)
    for number in range(3):
        engine.search([f"q{number}"], 1)
    in_vain = ["queries"] * (server.schema == "query")
    assert [next(iter(body)) for body in server.requests] == [*in_vain, *[server.schema] * 3]


def test_equal_queries_are_sent_once_and_remembered(server):
    engine = client(server.url)
    first = engine.search(["ada  king ", " ada king", "", "ada king", "\n"], 3)
    assert first[0] == first[1] == first[3] and len(first[0]) == 3 and first[2] == first[4] == []
    first[0].clear()
    assert len(engine.search(["ada king"], 3)[0]) == 3
    assert asked(server) == ["ada king"]
    assert len(engine.search(["ada king"], 1)[0]) == 1
    assert asked(server) == ["ada king"] * 2


def test_batches_hold_256_queries_or_one(server):
    queries = [f"q{n}" for n in range(600)]
    found = client(server.url).search(queries, 1)
    assert [passages[0].id for passages in found] == [f"{query}-0" for query in queries]
    sizes = [len(_queries(body)) for body in server.requests if server.schema in body]
    assert sorted(sizes) == ([1, 87, 256, 256] if server.schema == "queries" else [1] * 600)
    assert sorted(asked(server)) == sorted(queries)


def test_nothing_to_ask_asks_nothing(server):
    assert client(server.url).search([], 3) == []
    assert client(server.url).search(["", " "], 3) == [[], []]
    assert server.requests == []


GOOD = {"document": {"id": "a", "contents": '"T"\ntext'}, "score": 1.0}
NONSENSE = [
    b"<html>502</html>",
    b'{"result": [[',
    b"",
    b"\xff\xfe\xff",
    b"[]",
    b'{"result": []}',
    b'{"result": null}',
    b'{"result": [null]}',
    json.dumps({"result": [[GOOD], [GOOD]]}).encode(),
    json.dumps({"result": [[GOOD["document"]]]}).encode(),
    json.dumps({"result": [[{"document": {"id": "a"}, "score": 1.0}]]}).encode(),
    json.dumps({"result": [[{**GOOD, "score": None}]]}).encode(),
    json.dumps({"result": [[{**GOOD, "score": 10**400}]]}).encode(),
    b'{"result": [[{"document": {"id": "a", "contents": "x"}, "score": NaN}]]}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("wrong", [500, 502, 503, 504, 429, 408, DROP, *NONSENSE])
def test_what_passes_is_tried_again_and_what_stays_is_an_error_value(wrong):
    with serving(RetrievalServer()) as server:
        engine = client(server.url)
        engine.check()
        server.trouble.extend([wrong] * 3)
        assert [p.id for p in engine.search(["ada"], 1)[0]] == ["ada-0"]
        assert len(server.requests) == 5
        server.trouble.extend([wrong] * 4)
        (error,) = engine.search(["king"], 1)
        assert (
            isinstance(error, RetrievalError) and "the last of 4 tries" in error.reason and server.url in error.reason
        )
        assert len(server.requests) == 9
        assert [p.id for p in engine.search(["king"], 1)[0]] == ["king-0"]  # a failure is not remembered


def test_a_server_that_stalls_is_given_up():
    with serving(RetrievalServer()) as server:
        engine = client(server.url, tries=2, read_s=0.5)
        engine.check()
        server.trouble.extend([STALL] * 2)
        (error,) = engine.search(["ada"], 1)
        assert "timed out" in error.reason
        assert [p.id for p in engine.search(["ada"], 1)[0]] == ["ada-0"]


def test_a_server_that_trickles_is_given_up():
    with trickling() as url:
        (error,) = client(url, tries=1, read_s=0.15).search(["ada"], 1)
        assert "no whole answer within 0.15 s" in error.reason


def test_only_the_queries_of_the_failed_request_fail():
    with serving(RetrievalServer("query")) as server:
        engine = client(server.url, tries=1)
        engine.check()
        server.trouble.append(500)
        found = engine.search(["a", "b", "c"], 1)
        assert [type(entry) for entry in found].count(RetrievalError) == 1
        assert len([entry for entry in found if isinstance(entry, list) and len(entry) == 1]) == 2


def test_a_server_that_is_down_from_the_start_and_comes_back():
    with serving(RetrievalServer()) as server:
        port = int(server.url.rpartition(":")[2])
    engine = client(server.url)
    found = engine.search(["ada", "", "king"], 1)
    assert [type(entry) for entry in found] == [RetrievalError, list, RetrievalError]
    assert "ConnectionRefusedError" in found[0].reason
    with pytest.raises(ValueError, match=r"ConnectionRefusedError.*start the retrieval server"):
        engine.check()
    with serving(RetrievalServer(), port):
        assert [entry[0].id for entry in engine.search(["ada", "king"], 1)] == ["ada-0", "king-0"]


def test_waits_grow_with_jitter(monkeypatch):
    waits = []
    monkeypatch.setattr("trca_jax.envs.searchqa.http.time.sleep", waits.append)
    with serving(RetrievalServer()) as server:
        server.trouble.extend([500] * 4)
        client(server.url, wait_s=1.0).search(["ada"], 1)
    assert len(waits) == 3 and len({round(wait / 2**n, 6) for n, wait in enumerate(waits)}) == 3
    assert all(0.5 * 2**n <= wait <= 1.5 * 2**n for n, wait in enumerate(waits))


@pytest.mark.parametrize("status", [400, 401, 404, 422, 301])
def test_a_refused_request_is_a_wrong_setting_and_tried_once(status):
    with serving(RetrievalServer()) as server:
        engine = client(server.url)
        engine.check()
        server.trouble.append(status)
        with pytest.raises(ValueError, match=rf"refuses a request with 'queries': status {status}, b'<html>"):
            engine.search(["ada"], 1)
        assert len(server.requests) == 2


def test_a_server_of_neither_schema_or_at_another_path_is_named():
    with serving(RetrievalServer("text")) as server:
        with pytest.raises(ValueError, match=rf"{server.url}/retrieve takes neither queries nor a query"):
            client(server.url).check()
        with pytest.raises(ValueError, match=r"/search refuses a request with 'queries': status 404"):
            client(server.url + "/search").check()


def test_the_check_wants_a_passage_for_a_known_query(server):
    client(server.url).check()
    assert _queries(server.requests[-1]) == ["Who was the first president of the United States?"]
    with pytest.raises(ValueError, match="finds nothing for 'nothing'"):
        client(server.url).check("nothing")


def test_several_servers_are_asked_in_turn_and_stand_in_for_each_other():
    with serving(RetrievalServer()) as first, serving(RetrievalServer()) as second:
        engine = client(first.url, second.url)
        engine.check()
        assert len(first.requests) == len(second.requests) == 1
        for number in range(6):
            engine.search([f"q{number}"], 1)
        assert len(first.requests) == len(second.requests) == 4
        first.trouble.extend([500] * 10)
        assert all(isinstance(engine.search([f"r{number}"], 1)[0], list) for number in range(4))


def test_short_lists_pads_and_documents_without_id():
    padded = {"document": {"id": "last", "contents": "x"}, "score": -3.4e38}
    bm25 = {"document": {"title": "T", "text": "text", "contents": '"T"\ntext'}, "score": 2}
    with serving(RetrievalServer()) as server:
        engine = client(server.url)
        engine.check()
        server.trouble.append(json.dumps({"result": [[bm25, padded, GOOD, GOOD, GOOD]]}).encode())
        (found,) = engine.search(["ada"], 3)
        assert [(p.title, p.text, p.score) for p in found] == [("T", "text", score) for score in (2.0, 1.0, 1.0)]
        assert len(found[0].id) == 16 and found[1].id == "a"
        server.trouble.append(json.dumps({"result": [[bm25]]}).encode())
        assert engine.search(["king"], 3)[0][0].id == found[0].id


def test_queries_of_any_text_arrive(server):
    queries = ['"quotes" & <answer>', "日本 🙂 \ud800", "x" * 100_000]
    client(server.url).search(queries, 1)
    assert sorted(asked(server)) == sorted(queries)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://a", "http://", "http://a:port", "http://a b", "http://a:99999"]
)
def test_a_bad_address_is_named(url):
    with pytest.raises(ValueError, match="is no address of a retrieval server; expected one such as http"):
        client(url)


def test_bad_settings_are_one_line(server):
    with pytest.raises(ValueError, match="k is 0 passages a query"):
        client(server.url).search(["ada"], 0)
    with pytest.raises(ValueError, match="0 urls and 4 tries"):
        client()
