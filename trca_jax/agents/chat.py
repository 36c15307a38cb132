"""Any OpenAI-compatible endpoint as a chat model, with a cache on disk and a count of tokens and cost."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trca_jax.agents.endpoint import ChatError, ContextFull, Endpoint

Message = Mapping[str, str]  # role: system, user or assistant; content


@dataclass(frozen=True)
class Reply:
    """One answer. prompt_tokens, completion_tokens: as the endpoint counts them, 0 where it does not.
    cached: it was answered before, and cost nothing now."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    cached: bool = False


class Chat:
    """Asks a model for answers: POST {endpoint}/chat/completions.

    cache: a folder with one file for each request that was answered, so that what was asked once is never paid twice;
    None: nothing is kept. concurrency: requests at once. prices: dollars for a million tokens of prompts and of
    answers; 0 and 0: unknown. more: tries, wait_s, timeout_s, as `Endpoint` takes them, which also tells where the key
    comes from. Raises ValueError as it does, and for values out of range.
    """

    def __init__(
        self, endpoint: str, model: str, *, cache: Path | None = None, concurrency: int = 8,
        prices: tuple[float, float] = (0.0, 0.0), **more: float,
    ):  # fmt: skip
        if not model:
            raise ValueError(f"the endpoint {endpoint} needs the name of a model")
        if concurrency < 1 or len(prices) != 2 or not min(prices) >= 0:
            raise ValueError(f"concurrency {concurrency}, prices {prices}; expected at least 1, and two of at least 0")
        self._endpoint, self.model, self._cache = Endpoint(endpoint, **more), model, cache
        self._concurrency, self._prices = concurrency, prices
        self._requests = self._cached = self._prompt = self._completion = 0
        self._lock = threading.Lock()

    def complete(self, messages: Sequence[Message], *, sample: int | str = 0, **sampling: Any) -> Reply:
        """The answer to a conversation.

        sampling: what else the request holds, such as temperature or max_tokens. sample: which of several answers to
        one request this is, any name; it is not sent, but each has its own place in the cache.
        Raises `ChatError` if there is no usable answer in all tries, its `ContextFull` for a conversation that is too
        long, and ValueError if the endpoint refuses the request.
        """
        return self._complete(messages, sample, sampling, threading.Event())

    def _complete(self, messages, sample: int | str, sampling: Mapping[str, Any], ended: threading.Event) -> Reply:
        body = {"model": self.model, "messages": [dict(m) for m in messages], **sampling}
        path = self._place(body, sample)
        reply = _read_cached(path)
        if reply is None:
            reply = self._endpoint.post("/chat/completions", body, _read_reply, ended)
            _write_cached(path, reply)
        with self._lock:
            self._requests += 1
            self._cached += reply.cached
            self._prompt += reply.prompt_tokens
            self._completion += reply.completion_tokens
        return reply

    def complete_all(
        self, conversations: Sequence[Sequence[Message]], *, samples: Sequence[int | str] | None = None,
        progress: Callable[[int, int], None] = lambda done, of: None, required: bool = False, **sampling: Any,
    ) -> list[Reply | ChatError]:  # fmt: skip
        """The answers in order, several at once; a request without one has its error in that place.

        samples: as `sample` of `complete`, one each. progress(done, of). Raises ValueError as soon as a request is
        refused, and with `required` also the `ChatError` of one that gets no answer, unless its conversation is too
        long. What is under way then, or when it is interrupted, is still answered and cached.
        """
        executor, ended = ThreadPoolExecutor(self._concurrency), threading.Event()
        samples = samples or [0] * len(conversations)
        try:
            places = {
                executor.submit(self._complete, messages, sample, sampling, ended): i
                for i, (messages, sample) in enumerate(zip(conversations, samples, strict=True))
            }
            replies: list[Any] = [None] * len(places)
            for done, future in enumerate(as_completed(places), 1):
                try:
                    replies[places[future]] = future.result()
                except ChatError as error:
                    if required and not isinstance(error, ContextFull):
                        raise
                    replies[places[future]] = error
                progress(done, len(places))
            return replies
        except BaseException:
            ended.set()
            raise
        finally:
            executor.shutdown(cancel_futures=True)

    def usage(self) -> dict[str, Any]:
        """Of all answers so far: requests, those `cached` among them, prompt_tokens, completion_tokens, and `cost` in
        dollars (None without prices): what it costs without a cache, so that a resumed study has the same figures."""
        return {
            "requests": self._requests, "cached": self._cached, "prompt_tokens": self._prompt,
            "completion_tokens": self._completion, "cost": self.cost(self._prompt, self._completion),
        }  # fmt: skip

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Dollars, None without prices."""
        prompt, completion = self._prices
        return (prompt_tokens * prompt + completion_tokens * completion) / 1e6 if any(self._prices) else None

    def _place(self, body: Mapping[str, Any], sample: int | str) -> Path | None:
        if self._cache is None:
            return None
        named = json.dumps([self._endpoint.url, body, sample], sort_keys=True)
        return self._cache / f"{hashlib.sha256(named.encode()).hexdigest()}.json"


def _read_reply(answer: Any) -> Reply:
    """The answer in a response. An answer that is none, but says why it ended, is empty. Raises ValueError for another
    shape."""
    try:
        choice = answer["choices"][0]
        message, usage = choice["message"], answer.get("usage") or {}
        text = message["content"]
        if text is None and choice["finish_reason"]:
            text = message.get("refusal") or ""
        counts = [usage.get(name) or 0 for name in ("prompt_tokens", "completion_tokens")]
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise ValueError(f"no choices[0].message.content: {type(error).__name__} {error}") from None
    if not isinstance(text, str) or not all(type(n) is int and n >= 0 for n in counts):
        raise ValueError("its content is no text, or its usage no numbers")
    return Reply(text.encode(errors="replace").decode(), *counts)  # lone surrogates can be written nowhere


def _read_cached(path: Path | None) -> Reply | None:
    """None if it is not there, or damaged."""
    try:
        reply = Reply(**json.loads(path.read_bytes())) if path else None
        return reply and replace(reply, cached=True)
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _write_cached(path: Path | None, reply: Reply) -> None:
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
        part.write_text(json.dumps(asdict(reply)) + "\n")
        os.replace(part, path)
