"""One HTTP address that answers JSON with JSON: waits, tries and errors.

The key is read from the environment, sent in the header of a request, and taken out of whatever comes back.
"""

from __future__ import annotations

import json
import os
import random
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.parse import urlsplit

KEY = "TRCA_API_KEY"
_AGAIN = (408, 409, 425, 429)  # and 5xx: the same request may succeed later
_LONGEST_WAIT_S = 60.0
_LONGEST_ASKED_WAIT_S = 600.0  # a server that asks for more is not waited for
_CHUNK, _LARGEST = 1 << 16, 1 << 26  # bytes
T = TypeVar("T")


class ChatError(OSError):
    """A request that got no usable answer in all its tries; another one may."""


class ContextFull(ChatError):
    """The conversation is longer than the model takes."""


class _Again(Exception):
    """One try brought nothing. wait_s: how long the server asks to be left alone."""

    def __init__(self, reason: str, wait_s: float = 0.0):
        super().__init__(reason)
        self.wait_s = wait_s


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # the key is for this host alone


class Endpoint:
    """POSTs to url. tries: of a request, with waits of about wait_s · 1, 2, 4, … (at most 60 s, and as long as a server
    asks in Retry-After) in between. timeout_s: for a connection, and for a whole answer.

    The key stands in the environment variable TRCA_API_KEY; without it none is sent, as local servers need none.
    Raises ValueError for an address that is none or that holds a secret, and for a key that no header can hold.
    """

    def __init__(self, url: str, *, tries: int = 7, wait_s: float = 1.0, timeout_s: float = 120.0):
        if tries < 1 or wait_s < 0 or not timeout_s > 0:
            raise ValueError(
                f"tries {tries}, wait_s {wait_s}, timeout_s {timeout_s}: expected at least 1, 0, and above 0"
            )
        self.url = _address(url)
        self._tries, self._wait_s, self._timeout_s = tries, wait_s, timeout_s
        self._key = os.environ.get(KEY, "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError(f"the key in {KEY} holds characters that no key has; set it again")
        self._opener = urllib.request.build_opener(_NoRedirect)
        self._jitter = random.Random()

    def post(self, path: str, body: Any, read: Callable[[Any], T], ended: threading.Event) -> T:
        """What `read` makes of the answer, which raises ValueError for an answer of another shape.

        ended: once it is set there are no further tries.
        Lost connections, timeouts, the states 408, 409, 425, 429 and 5xx, and answers that are no JSON or of another
        shape are tried again, then a `ChatError`. Raises ValueError at once for all other states: the request is wrong.
        """
        data = json.dumps(body).encode()
        for number in range(1, self._tries + 1):
            try:
                return self._read(self._request(path, data), read)
            except _Again as again:
                reason, asked_s = again, again.wait_s
            own_s = min(self._wait_s * 2 ** (number - 1), _LONGEST_WAIT_S) * self._jitter.uniform(0.5, 1.5)
            if number == self._tries or asked_s > _LONGEST_ASKED_WAIT_S or ended.wait(max(own_s, asked_s)):
                break
        later = f", and it asks to wait {asked_s:.0f} s" if asked_s else ""
        raise ChatError(f"{self.url}{path} gave no answer in {number} tries: {reason}{later}")

    def _read(self, data: bytes, read: Callable[[Any], T]) -> T:
        try:
            return read(json.loads(self._clean(data.decode())))
        except (ValueError, RecursionError) as error:
            text = data[:80].decode(errors="replace")
            raise _Again(f"an answer that cannot be read ({error}): {self._clean(text)!r}") from None

    def _request(self, path: str, data: bytes) -> bytes:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        request = urllib.request.Request(self.url + path, data, headers)
        end = time.monotonic() + self._timeout_s
        try:
            try:
                with self._opener.open(request, timeout=self._timeout_s) as response:
                    return self._content(response, end)
            except urllib.error.HTTPError as answer:
                with answer:
                    told = self._clean(self._content(answer, end).decode(errors="replace"))
                    status, wait_s = answer.code, _retry_after(answer.headers.get("Retry-After"))
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ValueError(f"{self.url} shows no valid certificate: {reason.verify_message}") from None
            raise _Again(f"{type(reason).__name__}: {reason}") from None
        if status in _AGAIN or status >= 500:
            raise _Again(f"state {status}{_short(told)}", wait_s)
        raise self._refused(path, status, told)

    def _content(self, response, end: float) -> bytes:
        parts, size = [], 0
        while part := response.read1(_CHUNK):
            parts.append(part)
            size += len(part)
            if time.monotonic() > end:
                raise TimeoutError(f"no whole answer within {self._timeout_s:g} s")
            if size > _LARGEST:
                raise OSError(f"an answer of more than {_LARGEST >> 20} MiB")
        return b"".join(parts)

    def _refused(self, path: str, status: int, told: str) -> Exception:
        text = f"{self.url}{path} refuses the request with state {status}{_short(told)}"
        if status in (400, 413) and "context" in told.lower() and ("length" in told.lower() or "token" in told.lower()):
            return ContextFull(text)
        if status in (401, 403):
            return ValueError(f"{text}; {'correct' if self._key else 'set'} the key in {KEY}")
        return ValueError(f"{text}; correct the endpoint's address, the model's name or the settings")

    def _clean(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text


def _address(url: str) -> str:
    """The address without a slash at its end."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        secret = "@" in parts.netloc or parts.query or parts.fragment
    except ValueError:
        good = secret = False
    if secret:
        raise ValueError(f"the endpoint's address must be plain, such as https://host/v1; the key belongs in {KEY}")
    if not (good and url.isascii() and url.isprintable() and " " not in url):
        raise ValueError(f"{url!r} is no address of an endpoint; expected one such as http://localhost:8000/v1")
    return url.rstrip("/").removesuffix("/chat/completions")


def _retry_after(value: str | None) -> float:
    """Seconds, from a number or a date; 0 where there is none or it cannot be read."""
    try:
        return max(float(value or 0), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _short(text: str) -> str:
    """What an error answer says, in brackets and at most one line; nothing if it is empty."""
    try:
        told = json.loads(text)
        told = told.get("error", told) if isinstance(told, dict) else told
        text = str(told["message"]) if isinstance(told, dict) and "message" in told else text
    except (ValueError, RecursionError):
        pass
    return f" ({' '.join(text.split())[:200]})" if text.strip() else ""
