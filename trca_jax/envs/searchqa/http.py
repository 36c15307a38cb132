"""A search engine behind HTTP: the servers of Search-R1 and of verl-agent.

Source: spec/searchqa.md section 5.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import random
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any
from urllib.parse import SplitResult, urlsplit

from trca_jax.envs.searchqa.corpus import passage
from trca_jax.envs.searchqa.retrieval import Passage, RetrievalError

_SCHEMAS = {"queries": 256, "query": 1}  # the field that a server takes, and how many queries go into one request
_OTHER_SCHEMA = (400, 422)
_PASSING = (408, 429)  # and all from 500 on
_REMEMBERED = 10_000  # queries
_REQUESTS = 16  # at a time
_CHUNK = 1 << 16
_PAD = -1e30  # a dense server fills short lists up with the corpus' last row, at a score below this
_KNOWN = "Who was the first president of the United States?"


class _Failure(Exception):
    """A request that brought nothing; another may. answered: the server is there, perhaps it cannot take a query."""

    def __init__(self, text: str, *, answered: bool = False):
        super().__init__(text)
        self.answered = answered


class _Refused(ValueError):
    """A request that the server calls wrong."""

    def __init__(self, text: str, status: int):
        super().__init__(text)
        self.status = status


class HttpRetriever:
    """Passages from one server, or from several equal ones in turn.

    urls: such as http://localhost:8000/retrieve; the path may be left out. connect_s, read_s: longest wait for a
    connection and for a whole answer. tries: of a request, each at the next server, after about wait_s, 2·wait_s,
    4·wait_s, ... Tried again are lost connections, timeouts, the statuses 408, 429 and 5xx, and answers that cannot be
    read; in the end their queries get a `RetrievalError`. Where a server did answer, each query is asked for alone
    before, as one of them may be what it fails at. Requests not begun by then are given up if none has succeeded, so
    that an outage takes a search little longer than one request. Other statuses mean a wrong setting: ValueError at
    once. Successful answers are remembered. Whether the servers take `queries` or one `query` is found out once, by
    asking.
    """

    def __init__(
        self, urls: Sequence[str], *, connect_s: float = 5.0, read_s: float = 60.0, tries: int = 4, wait_s: float = 1.0
    ):
        if not urls or tries < 1:
            raise ValueError(f"{len(urls)} urls and {tries} tries; expected at least one of each")
        self._servers = [_server(url) for url in urls]
        self._connect_s, self._read_s, self._tries, self._wait_s = connect_s, read_s, tries, wait_s
        self._turn, self._jitter = count(), random.Random()
        self._schema: str | None = None
        self._seen: OrderedDict[tuple[str, int], list[Passage]] = OrderedDict()

    def check(self, known: str = _KNOWN) -> None:
        """Asks every server for a query whose passages are surely there.

        Raises ValueError naming the server that cannot be reached, takes neither schema, or finds nothing.
        """
        for server in self._servers:
            try:
                (found,) = self._settle([known], 1, [server], self._tries)
            except _Failure as failure:
                raise ValueError(f"{failure}; start the retrieval server there, or correct the address") from None
            if not found:
                raise ValueError(
                    f"{server.geturl()} finds nothing for {known!r}; expected a passage: is the index right?"
                )

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage] | RetrievalError]:
        """See `Retriever.search`. Blanks in a query count as one; a query of blanks alone is not sent."""
        if k < 1:
            raise ValueError(f"k is {k} passages a query; expected at least 1")
        queries = [" ".join(query.split()) for query in queries]
        found: dict[str, list[Passage] | RetrievalError] = {"": []}
        for query in set(queries):
            if (query, k) in self._seen:
                self._seen.move_to_end((query, k))
                found[query] = self._seen[query, k]
        missing = [query for query in dict.fromkeys(queries) if query not in found]
        if missing and self._schema is None:  # one query finds out how the others may be asked
            found |= self._batch(missing[:1], k)
            if self._schema is None:
                found |= dict.fromkeys(missing, found[missing[0]])
            missing = [query for query in missing if query not in found]
        size = _SCHEMAS[self._schema] if missing else 1
        ended: list[bool] = []  # of the requests so far, whether they brought something

        def ask(at: int) -> dict[str, list[Passage] | RetrievalError]:
            part = missing[at : at + size]
            if at >= _REQUESTS * size and ended and not any(ended):
                return dict.fromkeys(part, RetrievalError("not asked: all requests before it failed"))
            answers = self._batch(part, k)
            ended.append(not isinstance(answers[part[0]], RetrievalError))
            return answers

        with ThreadPoolExecutor(_REQUESTS) as pool:
            for part in pool.map(ask, range(0, len(missing), size)):
                found |= part
        for query, passages in found.items():
            if query and not isinstance(passages, RetrievalError):
                self._seen[query, k] = passages
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return [entry if isinstance(entry := found[query], RetrievalError) else list(entry) for query in queries]

    def _batch(self, queries: list[str], k: int) -> dict[str, list[Passage] | RetrievalError]:
        try:
            return dict(zip(queries, self._settle(queries, k, self._servers, self._tries), strict=True))
        except _Failure as failure:
            found = dict.fromkeys(queries, RetrievalError(str(failure)))
            return found | (self._apart(queries, k) if failure.answered and len(queries) > 1 else {})

    def _apart(self, queries: list[str], k: int) -> dict[str, list[Passage]]:
        """What comes through of the queries one by one, each tried once; given up if it seems that nothing does."""
        found: dict[str, list[Passage]] = {}
        for number, query in enumerate(queries):
            if not found and number >= self._tries:
                break
            with suppress(_Failure):
                (found[query],) = self._settle([query], k, self._servers, 1)
        return found

    def _settle(self, queries: list[str], k: int, servers: Sequence[SplitResult], tries: int) -> list[list[Passage]]:
        """The answers after as many tries as it takes. Raises _Failure with the last reason if all tries fail."""
        for tried in range(tries):
            if tried:
                time.sleep(self._wait_s * 2 ** (tried - 1) * self._jitter.uniform(0.5, 1.5))
            server = servers[next(self._turn) % len(servers)]
            try:
                return self._ask(server, queries, k)
            except _Failure as failure:
                reason = failure
        raise _Failure(f"{server.geturl()} failed, the last of {tries} tries: {reason}", answered=reason.answered)

    def _ask(self, server: SplitResult, queries: list[str], k: int) -> list[list[Passage]]:
        if self._schema:
            return self._post(server, self._schema, queries, k)
        for schema in _SCHEMAS:
            try:
                answers = self._post(server, schema, queries, k)
            except _Refused as refused:
                if refused.status not in _OTHER_SCHEMA:
                    raise
            else:
                self._schema = schema
                return answers
        raise ValueError(
            f"{server.geturl()} takes neither queries nor a query; expected a server of Search-R1 or verl-agent"
        )

    def _post(self, server: SplitResult, schema: str, queries: list[str], k: int) -> list[list[Passage]]:
        # without return_scores, Search-R1's server mixes up two queries
        asked = {schema: queries if schema == "queries" else queries[0], "topk": k, "return_scores": True}
        status, data = self._request(server, json.dumps(asked).encode())
        if status in _PASSING or status >= 500:
            raise _Failure(f"status {status}", answered=True)
        if status != 200:
            raise _Refused(
                f"{server.geturl()} refuses a request with {schema!r}: status {status}, {data[:200]!r}; correct the "
                "address, or give servers that take the same field",
                status,
            )
        try:
            return _passages(json.loads(data), len(queries), k)
        except (ValueError, OverflowError, RecursionError) as error:
            raise _Failure(f"an answer that cannot be read: {error}", answered=True) from None

    def _request(self, server: SplitResult, body: bytes) -> tuple[int, bytes]:
        """Status and content of the answer to one POST."""
        kind = http.client.HTTPSConnection if server.scheme == "https" else http.client.HTTPConnection
        connection = kind(server.hostname, server.port, timeout=self._connect_s)
        try:
            connection.connect()
            connection.sock.settimeout(self._read_s)
            end = time.monotonic() + self._read_s
            connection.request("POST", server.path, body, {"Content-Type": "application/json"})
            response, parts = connection.getresponse(), []
            while part := response.read1(_CHUNK):
                parts.append(part)
                if time.monotonic() > end:
                    raise TimeoutError(f"no whole answer within {self._read_s:g} s")
            return response.status, b"".join(parts)
        except (OSError, http.client.HTTPException) as error:
            raise _Failure(f"{type(error).__name__}: {error}") from None
        finally:
            connection.close()


def _server(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and url.isascii()
            and " " not in url
        ):
            return parts._replace(path=parts.path if parts.path not in ("", "/") else "/retrieve")
    except ValueError:
        pass
    raise ValueError(
        f"{url!r} is no address of a retrieval server; expected one such as http://localhost:8000/retrieve"
    )


def _passages(answer: Any, queries: int, k: int) -> list[list[Passage]]:
    """The lists of an answer, each cut to k and without padding. Raises ValueError saying what is wrong with it."""
    lists = answer.get("result") if isinstance(answer, dict) else None
    if not isinstance(lists, list) or len(lists) != queries:
        raise ValueError(f"{len(lists) if isinstance(lists, list) else 'no'} lists of results for {queries} queries")
    if not all(isinstance(hits, list) for hits in lists):
        raise ValueError(f"a list of results is {str(lists)[:60]!r}")
    return [[p for p in map(_passage, hits) if p.score > _PAD][:k] for hits in lists]


def _passage(hit: Any) -> Passage:
    document, score = (hit.get("document"), hit.get("score")) if isinstance(hit, dict) else (None, None)
    if not isinstance(document, dict) or not isinstance(score, int | float) or math.isnan(score):
        raise ValueError(f"{str(hit)[:60]!r} is no result; expected a document and its score")
    # a BM25 server leaves the id out
    identity = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]
    return passage({"id": identity, **document}, float(score))
