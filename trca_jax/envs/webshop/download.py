"""Gets WebShop's small data set from public mirrors; only what has the right content is kept.

A git blob id is sha1("blob " + length + NUL + content), so any mirror can be trusted that passes it. Source:
spec/webshop.md section 2.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 1 << 16
_TRIES = 3  # of one mirror; each goes on where the last one broke off
_GYM, _MINIMAL = "WooooDyy/AgentGym", "ZihanWang314/webshop-minimal"
_GYM_DATA = (
    f"https://raw.githubusercontent.com/{_GYM}/f434743ae2308d8bf40e3de2ca446a78bdff0bf2/agentenv-webshop/webshop/data"
)


@dataclass(frozen=True)
class RemoteFile:
    """A file by its name and content. urls: where it may be found, tried in turn."""

    name: str
    blob: str
    urls: tuple[str, ...]


def _remote(name: str, blob: str, *urls: str) -> RemoteFile:
    by_content = (f"https://api.github.com/repos/{repo}/git/blobs/{blob}" for repo in (_GYM, _MINIMAL))
    return RemoteFile(name, blob, (*urls, *by_content))


SMALL = (
    _remote(
        "items_shuffle_1000.json",
        "08dfda9a1c896e0f69d50e3437dd3fe94419b7d7",
        f"{_GYM_DATA}/items_shuffle_1000.json",
    ),
    _remote(
        "items_ins_v2_1000.json",
        "22837ad99f3173712fc9cb1cce7de6b75fe90595",
        f"{_GYM_DATA}/items_ins_v2_1000.json",
    ),
    _remote(
        "items_human_ins.json",
        "b2ab7479b9798e0b62ea394e065f3d506875f090",
        "https://raw.githubusercontent.com/princeton-nlp/WebShop/64fa2a5c15c7daa698b9ac93f5bb5437b634c9bd/"
        "baseline_models/data/items_human_ins.json",
    ),
)


def blob_id(path: Path) -> str:
    """The git blob id of a file."""
    digest = hashlib.sha1(f"blob {path.stat().st_size}\0".encode())
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def fetch(
    files: Sequence[RemoteFile],
    folder: Path,
    say: Callable[[str], None] = lambda text: None,
    *,
    timeout_s: float = 30.0,
) -> None:
    """Puts the files into the folder; what is there with the right content stays.

    A file appears under its name only when it is complete and right; until then it is `NAME.part`, which the next call
    goes on with. say: told in words what happens. Raises ValueError naming the file and why each mirror failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        target = folder / file.name
        if target.is_file() and blob_id(target) == file.blob:
            say(f"{file.name}: here already")
            continue
        reasons = []
        for url in file.urls:
            say(f"{file.name}: from {url}")
            reason = _from_mirror(url, file.blob, target, timeout_s)
            if reason is None:
                say(f"{file.name}: {target.stat().st_size} bytes, content as expected")
                break
            reasons.append(f"{url}: {reason}")
            say(f"{file.name}: {reason}")
        else:
            raise ValueError(
                f"{file.name} could not be fetched; put a copy with the git blob id {file.blob} into {folder}, or call "
                f"again later. Tried: {'; '.join(reasons) or 'no mirror'}"
            )


def _from_mirror(url: str, blob: str, target: Path, timeout_s: float) -> str | None:
    """Why the mirror did not give the file; None if it did."""
    partial = target.with_name(f"{target.name}.part")
    reason = ""
    for _ in range(_TRIES):
        resumed = partial.exists()
        try:
            _download(url, partial, timeout_s)
        except urllib.error.HTTPError as error:
            if error.code != 416:  # the part is already as long as the file, or longer
                return f"HTTP status {error.code}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            continue
        found = blob_id(partial)
        if found == blob:
            os.replace(partial, target)
            return None
        partial.unlink()
        reason = f"its content has the git blob id {found}, expected {blob}"
        if not resumed:  # else the earlier part may have been to blame
            break
    return reason


def _download(url: str, partial: Path, timeout_s: float) -> None:
    """Writes what the mirror has behind what is there already; from the start if it cannot resume."""
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(url, headers={"Accept": "application/vnd.github.raw, */*"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        mode = "ab" if answer.status == 206 else "wb"
        with partial.open(mode) as file:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
