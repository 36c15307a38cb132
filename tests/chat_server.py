"""An endpoint on the loopback with the wire format of chat completions; a script says how it behaves."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text, prompt=10, completion=5):
    """The body of a good answer."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}


@dataclass
class Bad:
    """An answer that is not as it should be. body: bytes, or what is written as JSON. cut: the connection breaks off so
    many bytes before the end. stall_s: seconds before anything comes; drip_s: between all bytes."""

    status: int = 200
    body: object = b""
    headers: dict = field(default_factory=dict)
    cut: int = 0
    stall_s: float = 0.0
    drip_s: float = 0.0


class Server:
    """answer: called with each request's body, in any thread; returns a text or a Bad. seen: (body, headers, when)."""

    def __init__(self, answer):
        self.answer, self.seen, self.at_once, self.most = answer, [], 0, 0
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/v1"

    def reply(self, handler):
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.seen.append((body, dict(handler.headers), time.monotonic()))
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            told = self.answer(body) if handler.path == "/v1/chat/completions" else Bad(404, {"error": "no such path"})
        finally:
            with self.lock:
                self.at_once -= 1
        bad = told if isinstance(told, Bad) else Bad(body=completion(told))
        data = bad.body if isinstance(bad.body, bytes) else json.dumps(bad.body).encode()
        time.sleep(bad.stall_s)
        handler.send_response(bad.status)
        for name, value in {"Content-Length": str(len(data)), **bad.headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        data = data[: len(data) - bad.cut]
        for part in [data[i : i + 1] for i in range(len(data))] if bad.drip_s else [data]:
            handler.wfile.write(part)
            handler.wfile.flush()
            time.sleep(bad.drip_s)


@contextmanager
def serving(answer):
    """A running Server."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            with suppress(OSError):  # the client has gone
                server.reply(self)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.port = http.server_address[1]
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
