"""Downloading from mirrors that break off, lie or are not there: a server on this machine plays them."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from trca_jax.envs.webshop.download import SMALL, RemoteFile, blob_id, fetch

CONTENT = bytes(range(256)) * 1000
BLOB = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()


class Mirror(BaseHTTPRequestHandler):
    """/good serves CONTENT and resumes, /whole ignores ranges, /short breaks off the first time, /wrong lies."""

    def do_GET(self):
        kind = self.path.split("/")[1]
        self.server.log.append((kind, self.headers.get("Range")))
        if kind not in ("good", "whole", "short", "wrong"):
            self.send_error(404)
            return
        body, start = (CONTENT[::-1] if kind == "wrong" else CONTENT), 0
        if self.headers.get("Range") and kind != "whole":
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        cut = 100_000 if kind == "short" and start == 0 else len(body)
        self.wfile.write(body[start:cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    server.log = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def remote(server, *kinds, blob=BLOB):
    address = f"http://127.0.0.1:{server.server_address[1]}"
    return RemoteFile("data.json", blob, tuple(f"{address}/{kind}/data.json" for kind in kinds))


def test_a_file_is_fetched_once(server, tmp_path):
    said = []
    fetch([remote(server, "good")], tmp_path / "new", said.append)
    assert (tmp_path / "new" / "data.json").read_bytes() == CONTENT
    fetch([remote(server, "good")], tmp_path / "new", said.append)
    assert server.log == [("good", None)]
    assert "content as expected" in said[1] and said[-1] == "data.json: here already"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["data.json"]


def test_a_broken_download_goes_on_where_it_was(server, tmp_path):
    fetch([remote(server, "short")], tmp_path)
    assert server.log == [("short", None), ("short", "bytes=100000-")]
    assert blob_id(tmp_path / "data.json") == BLOB


def test_a_part_of_an_earlier_call_is_used(server, tmp_path):
    (tmp_path / "data.json.part").write_bytes(CONTENT[:5000])
    fetch([remote(server, "good")], tmp_path)
    assert server.log == [("good", "bytes=5000-")]
    assert (tmp_path / "data.json").read_bytes() == CONTENT


def test_a_whole_part_is_recognised(server, tmp_path):
    (tmp_path / "data.json.part").write_bytes(CONTENT)
    fetch([remote(server, "good")], tmp_path)
    assert (tmp_path / "data.json").read_bytes() == CONTENT


@pytest.mark.parametrize("part", [b"other content", b"x" * (len(CONTENT) + 1)])
def test_a_wrong_part_is_thrown_away(server, tmp_path, part):
    (tmp_path / "data.json.part").write_bytes(part)
    fetch([remote(server, "good")], tmp_path)
    assert (tmp_path / "data.json").read_bytes() == CONTENT
    assert server.log[-1] == ("good", None)


def test_a_mirror_that_cannot_resume_starts_anew(server, tmp_path):
    (tmp_path / "data.json.part").write_bytes(CONTENT[:5000])
    fetch([remote(server, "whole")], tmp_path)
    assert (tmp_path / "data.json").read_bytes() == CONTENT


def test_mirrors_are_tried_in_turn(server, tmp_path):
    said = []
    fetch([remote(server, "gone", "wrong", "good")], tmp_path, said.append)
    assert [kind for kind, _ in server.log] == ["gone", "wrong", "good"]
    assert any("HTTP status 404" in text for text in said)
    assert any(f"expected {BLOB}" in text for text in said)


def test_when_no_mirror_has_it_each_reason_is_told_and_nothing_is_left(server, tmp_path):
    dead = RemoteFile("data.json", BLOB, ("http://127.0.0.1:9/data.json", *remote(server, "gone", "wrong").urls))
    with pytest.raises(
        ValueError, match=rf"data\.json could not be fetched.*{BLOB}.*127\.0\.0\.1:9.*404.*blob id"
    ) as error:
        fetch([dead], tmp_path, timeout_s=2)
    assert str(tmp_path) in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_in_place_is_replaced_only_by_the_right_one(server, tmp_path):
    (tmp_path / "data.json").write_bytes(b"mine")
    with pytest.raises(ValueError, match="could not be fetched"):
        fetch([remote(server, "wrong")], tmp_path)
    assert (tmp_path / "data.json").read_bytes() == b"mine"
    fetch([remote(server, "good")], tmp_path)
    assert (tmp_path / "data.json").read_bytes() == CONTENT


def test_the_small_set_is_known_by_its_content(shared_data):
    assert {file.name: file.blob for file in SMALL} == {
        "items_shuffle_1000.json": "08dfda9a1c896e0f69d50e3437dd3fe94419b7d7",
        "items_ins_v2_1000.json": "22837ad99f3173712fc9cb1cce7de6b75fe90595",
        "items_human_ins.json": "b2ab7479b9798e0b62ea394e065f3d506875f090",
    }
    assert all(len(file.urls) >= 3 and all(url.startswith("https://") for url in file.urls) for file in SMALL)
    assert blob_id(shared_data / "webshop" / "items_ins_v2_1000.json") == SMALL[1].blob
