"""A local retrieval server that does what a test tells it to, wrong things included."""

import json
import threading
import time
from collections import deque
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STALL, DROP = "stall", "drop"


class RetrievalServer:
    """Answers with passages "about QUERY". schema: the field it takes. trouble: what comes first, a request each: a
    status, raw bytes with status 200, STALL, or DROP. A query with "poison" is status 500, always. delay_s: of every
    answer. requests: what was asked, in order."""

    def __init__(self, schema="queries"):
        self.schema, self.trouble, self.requests = schema, deque(), []
        self.url, self.delay_s = "", 0.0
        self.released = threading.Event()

    def answer(self, body):
        """Status and content for one request."""
        self.requests.append(body)
        if self.delay_s:
            time.sleep(self.delay_s)
        wrong = self.trouble.popleft() if self.trouble else None
        if wrong in (STALL, DROP):
            self.released.wait(5 if wrong == STALL else 0)
            return None
        if isinstance(wrong, bytes):
            return 200, wrong
        if isinstance(wrong, int):
            return wrong, b"<html>no</html>"
        if self.schema not in body:
            return 422, b'{"detail": "field required"}'
        queries = body["queries"] if self.schema == "queries" else [body["query"]]
        if any("poison" in query for query in queries):
            return 500, b"cannot"
        return 200, json.dumps({"result": [self.hits(query, body["topk"]) for query in queries]}).encode()

    def hits(self, query, k):
        contents = [f'"T{n} {query}"\nabout {query}' for n in range(0 if "nothing" in query else k)]
        return [
            {"document": {"id": f"{query}-{n}", "contents": text}, "score": 9.0 - n} for n, text in enumerate(contents)
        ]


@contextmanager
def serving(server, port=0):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = server.answer(body) if self.path == "/retrieve" else (404, b"not here")
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer[0])
            self.send_header("Content-Length", str(len(answer[1])))
            self.end_headers()
            self.wfile.write(answer[1])

        def log_message(self, *_):
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_port}"
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        listening.shutdown()
        listening.server_close()
        thread.join()


@contextmanager
def trickling():
    """The address of a server that sends a byte now and then and never ends."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def feed():
            connection, _ = listening.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                for _ in range(200):
                    time.sleep(0.02)
                    try:
                        connection.sendall(b" ")
                    except OSError:
                        return

        thread = threading.Thread(target=feed, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()
