"""The client of endpoints against a server on the loopback: answers, errors, waits, cache, counts, and the key."""

import itertools
import json
import socket
import threading
import time
from email.utils import formatdate

import pytest
from chat_server import Bad, completion, serving

from trca_jax.agents.chat import Chat, Reply
from trca_jax.agents.endpoint import ChatError, ContextFull

KEY = "sk-verysecret-0123456789"
ASK = [{"role": "user", "content": "hello"}]


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("TRCA_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def chat(url, **more):
    return Chat(url, "m", **{"tries": 3, "wait_s": 0.01, "timeout_s": 5.0, **more})


def script(*answers):
    """Answers one after another; the last one stays."""
    left = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda body: next(left)


def test_a_request_has_the_wire_format_and_the_reply_its_tokens():
    with serving(script("hi")) as server:
        reply = chat(server.url).complete(ASK, temperature=0.4, max_tokens=7)
        assert reply == Reply("hi", 10, 5, cached=False)
        chat(server.url + "/").complete(ASK)
        chat(server.url + "/chat/completions").complete(ASK)
    body, headers, _ = server.seen[0]
    assert body == {"model": "m", "messages": ASK, "temperature": 0.4, "max_tokens": 7}
    assert headers["Authorization"] == f"Bearer {KEY}" and headers["Content-Type"] == "application/json"
    assert len(server.seen) == 3


def test_without_a_key_none_is_sent(monkeypatch):
    monkeypatch.delenv("TRCA_API_KEY")
    with serving(script("hi")) as server:
        chat(server.url).complete(ASK)
    assert "Authorization" not in server.seen[0][1]


@pytest.mark.parametrize(
    "bad",
    [
        Bad(500, b"oops"),
        Bad(503),
        Bad(429, {"error": {"message": "slow down"}}),
        Bad(body=b"<html>a login page</html>"),
        Bad(body=b"\xff\xfe\x00"),
        Bad(body=b"[" * 100_000),
        Bad(body=b'data: {"choices": [{"delta": {"content": "h"}}]}\n\n'),
        Bad(body=completion("hi"), cut=30),
        Bad(body=completion("hi"), cut=10**6),
        Bad(body={"answer": "hi"}),
        Bad(body=[]),
        Bad(body={"choices": []}),
        Bad(body={"choices": [{"message": {"content": None}}]}),
        Bad(body=completion(["hi"])),
        Bad(body=completion("hi", prompt="many")),
        Bad(body=completion("hi"), stall_s=0.4),
        Bad(body=completion("hi"), drip_s=0.02),
        Bad(204),
    ],
    ids=lambda bad: f"{bad.status}-{str(bad.body)[:24]}-{bad.cut}-{bad.stall_s}-{bad.drip_s}",
)
def test_a_request_that_may_succeed_later_is_tried_again(bad):
    with serving(script(bad, bad, "hi")) as server:
        assert chat(server.url, timeout_s=0.2).complete(ASK).text == "hi"
        assert len(server.seen) == 3
    with serving(script(bad)) as server, pytest.raises(ChatError, match=r"/v1/chat/completions gave no answer in 3 t"):
        chat(server.url, timeout_s=0.2).complete(ASK)
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (Bad(500, {"error": {"message": "out of\nmemory"}}), r"state 500 \(out of memory\)"),
        (Bad(body=b"<html>"), r"an answer that cannot be read \(.*\): '<html>'"),
        (Bad(body={"answer": "hi"}), r"no choices\[0\].message.content: KeyError 'choices'"),
        (Bad(stall_s=0.4), "TimeoutError: timed out"),
    ],
)
def test_what_was_wrong_last_is_told(bad, told):
    with serving(script(bad)) as server, pytest.raises(ChatError, match=told):
        chat(server.url, tries=1, timeout_s=0.2).complete(ASK)


def test_a_port_where_nobody_listens_is_an_error_after_all_tries():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(ChatError, match="in 2 tries: ConnectionRefusedError"):
            chat(url, tries=2).complete(ASK)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (400, "correct the endpoint's address, the model's name or the settings"),
        (401, "correct the key in TRCA_API_KEY"),
        (404, "state 404"),
        (302, "state 302"),
    ],
)
def test_a_refused_request_is_an_error_at_once(status, told):
    bad = Bad(status, {"error": {"message": f"you sent {KEY}"}}, {"Location": "http://127.0.0.1:1/"})
    with serving(script(bad)) as server, pytest.raises(ValueError, match=told) as error:
        chat(server.url).complete(ASK)
    assert len(server.seen) == 1 and KEY not in str(error.value) and "you sent ***" in str(error.value)


def test_a_missing_key_is_told(monkeypatch):
    monkeypatch.delenv("TRCA_API_KEY")
    with serving(script(Bad(401))) as server, pytest.raises(ValueError, match="state 401; set the key in TRCA_API_KEY"):
        chat(server.url).complete(ASK)


def test_a_conversation_that_is_too_long_is_an_error_of_its_own():
    bad = Bad(400, {"error": {"message": "This model's maximum context length is 8192 tokens", "code": "x"}})
    with serving(script(bad)) as server:
        first, second = chat(server.url).complete_all([ASK, ASK])
    assert isinstance(first, ContextFull) and isinstance(second, ContextFull) and len(server.seen) == 2


def test_a_required_answer_that_does_not_come_ends_all_of_them():
    """After the tries of one; a conversation that is too long is no such answer."""

    def answer(body):
        return Bad(500) if body["messages"][0]["content"] == "3" else Bad(400, {"error": "context length"})

    asks = [[{"role": "user", "content": str(n)}] for n in range(40)]
    with serving(answer) as server:
        model = chat(server.url, concurrency=1)
        with pytest.raises(ChatError, match="in 3 tries: state 500"):
            model.complete_all(asks, required=True)
        assert len(server.seen) < 40
        assert all(isinstance(r, ContextFull) for r in model.complete_all(asks[:3], required=True))


def waits(server):
    times = [when for _, _, when in server.seen]
    return [b - a for a, b in itertools.pairwise(times)]


def test_waits_double_and_vary():
    with serving(script(*[Bad(500)] * 4, "hi")) as server:
        chat(server.url, tries=5, wait_s=0.04).complete(ASK)
    for k, wait in enumerate(waits(server)):
        assert wait >= 0.5 * 0.04 * 2**k  # jitter takes off at most half


@pytest.mark.parametrize("kind", ["seconds", "date"])
def test_retry_after_is_honoured(kind):
    value = "0.3" if kind == "seconds" else formatdate(time.time() + 2, usegmt=True)  # a date has whole seconds
    with serving(script(Bad(429, headers={"Retry-After": value}), "hi")) as server:
        chat(server.url).complete(ASK)
    assert waits(server)[0] >= (0.3 if kind == "seconds" else 0.9)


@pytest.mark.parametrize("value", ["soon", "-5", "nan"])
def test_a_retry_after_that_says_nothing_is_passed_over(value):
    with serving(script(Bad(429, headers={"Retry-After": value}), "hi")) as server:
        assert chat(server.url).complete(ASK).text == "hi"


def test_nobody_waits_for_hours():
    bad = Bad(429, headers={"Retry-After": "7200"})
    with serving(script(bad)) as server, pytest.raises(ChatError, match=r"in 1 tries: .*and it asks to wait 7200 s"):
        chat(server.url).complete(ASK)


def test_many_requests_come_back_in_order_with_a_bounded_number_at_once():
    def answer(body):
        time.sleep(0.02)
        text = body["messages"][0]["content"]
        return Bad(500) if text == "5" else f"<{text}>"

    asks = [[{"role": "user", "content": str(n)}] for n in range(12)]
    told = []
    with serving(answer) as server:
        model = chat(server.url, concurrency=3)
        replies = model.complete_all(asks, progress=lambda *at: told.append(at))
    assert isinstance(replies.pop(5), ChatError)
    assert [reply.text for reply in replies] == [f"<{n}>" for n in range(12) if n != 5]
    assert server.most == 3 and told == [(n, 12) for n in range(1, 13)]
    assert model.usage()["requests"] == 11


def test_a_refusal_among_many_ends_all_of_them():
    def answer(body):
        text = body["messages"][0]["content"]
        return Bad(400) if text == "3" else Bad(500) if text == "0" else text

    asks = [[{"role": "user", "content": str(n)}] for n in range(40)]
    with serving(answer) as server, pytest.raises(ValueError, match="state 400"):
        chat(server.url, concurrency=2, wait_s=0.2).complete_all(asks)
    assert len(server.seen) < 40


def test_what_was_asked_once_is_never_asked_again(tmp_path):
    asks = [[{"role": "user", "content": str(n)}] for n in range(6)]
    with serving(lambda body: body["messages"][0]["content"]) as server:
        whole = chat(server.url, cache=tmp_path, prices=(2.0, 8.0))
        first = whole.complete_all(asks)
        again = chat(server.url, cache=tmp_path, prices=(2.0, 8.0))
        second = again.complete_all(asks)
        assert len(server.seen) == 6
        assert [r.text for r in second] == [r.text for r in first] and all(r.cached for r in second)
        own = {"requests": 6, "prompt_tokens": 60, "completion_tokens": 30, "cost": (60 * 2 + 30 * 8) / 1e6}
        assert whole.usage() == {**own, "cached": 0} and again.usage() == {**own, "cached": 6}
        # Another sample, setting or model is another request.
        again.complete(asks[0], sample=1)
        again.complete(asks[0], temperature=0.0)
        Chat(server.url, "n", cache=tmp_path).complete(asks[0])
        assert len(server.seen) == 9 and len(list(tmp_path.iterdir())) == 9
        assert all("sample" not in body for body, _, _ in server.seen)


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]", b'{"text": "x"}', b"\xff"])
def test_a_damaged_file_of_the_cache_is_asked_again(tmp_path, damage):
    with serving(script("hi")) as server:
        chat(server.url, cache=tmp_path).complete(ASK)
        (file,) = tmp_path.iterdir()
        file.write_bytes(damage)
        assert chat(server.url, cache=tmp_path).complete(ASK) == Reply("hi", 10, 5)
        assert chat(server.url, cache=tmp_path).complete(ASK).cached
    assert len(server.seen) == 2


def test_an_interrupt_keeps_what_was_answered(tmp_path):
    """The requests under way are finished and cached, the others are not made."""
    begun = threading.Event()

    def answer(body):
        begun.set()
        time.sleep(0.1)
        return "hi"

    def stop(done, of):
        raise KeyboardInterrupt

    asks = [[{"role": "user", "content": str(n)}] for n in range(20)]
    with serving(answer) as server:
        with pytest.raises(KeyboardInterrupt):
            chat(server.url, cache=tmp_path, concurrency=2).complete_all(asks, progress=stop)
        asked = len(server.seen)
        assert begun.is_set() and asked < 20 and len(list(tmp_path.iterdir())) == asked
        chat(server.url, cache=tmp_path).complete_all(asks)
        assert len(server.seen) == 20


def test_the_key_is_in_no_file_and_no_error(tmp_path):
    with serving(script(f"your key is {KEY}")) as server:
        assert chat(server.url, cache=tmp_path).complete(ASK).text == "your key is ***"
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())
    with serving(script(Bad(500, f"bad key {KEY}".encode()))) as server, pytest.raises(ChatError) as error:
        chat(server.url).complete(ASK)
    assert KEY not in str(error.value) and "bad key ***" in str(error.value)
    with serving(script(Bad(body=KEY.encode()))) as server, pytest.raises(ChatError) as error:
        chat(server.url).complete(ASK)
    assert KEY not in str(error.value)


def test_an_answer_without_text_that_says_why_is_empty_or_the_refusal():
    empty, refused = completion(None), completion(None)
    refused["choices"][0]["message"]["refusal"] = "I cannot help with that."
    bare = completion("hi")
    del bare["usage"]
    with serving(script(Bad(body=empty), Bad(body=refused), Bad(body=bare), Bad(body=completion("\ud800")))) as server:
        model = chat(server.url)
        texts = [model.complete(ASK) for _ in range(4)]
    assert [reply.text for reply in texts] == ["", "I cannot help with that.", "hi", "?"]
    assert (texts[2].prompt_tokens, texts[2].completion_tokens) == (0, 0)


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:0", "http://host:x/v1", "http://ho st/v1"]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="is no address of an endpoint; expected one such as"):
        Chat(url, "m")


@pytest.mark.parametrize("url", ["https://me:pass@host/v1", "https://host/v1?key=pass"])
def test_a_secret_in_the_address_is_refused_and_not_repeated(url):
    with pytest.raises(ValueError, match="the key belongs in TRCA_API_KEY") as error:
        Chat(url, "m")
    assert "pass" not in str(error.value)


def test_settings_out_of_range_are_refused(monkeypatch):
    for wrong in ({"tries": 0}, {"timeout_s": 0}, {"concurrency": 0}, {"prices": (1.0,)}, {"prices": (-1.0, 0.0)}):
        with pytest.raises(ValueError, match="expected at least"):
            Chat("http://host/v1", "m", **wrong)
    with pytest.raises(ValueError, match="needs the name of a model"):
        Chat("http://host/v1", "")
    monkeypatch.setenv("TRCA_API_KEY", "sk-one\nsk-two")
    with pytest.raises(ValueError, match="the key in TRCA_API_KEY holds characters") as error:
        Chat("http://host/v1", "m")
    assert "sk-" not in str(error.value)


def test_cached_files_hold_the_reply_alone(tmp_path):
    with serving(script("hi")) as server:
        chat(server.url, cache=tmp_path).complete(ASK)
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text()) == {"text": "hi", "prompt_tokens": 10, "completion_tokens": 5, "cached": False}
