"""Headless Chromium, driven through the pipe of its developer tools: real keys, and what it logs and asks for."""

import json
import os
import shutil
import subprocess
from base64 import b64decode
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-pipe"
).split()
_CODES = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13}


class Browser:
    """One page. profile: an empty folder. complaints: errors of scripts and all that the console said. requests: the
    addresses asked for."""

    def __init__(self, profile: Path):
        down, up = os.pipe(), os.pipe()  # the browser reads on descriptor 3 and writes on 4
        shell = f'exec "$0" "$@" 3<&{down[0]} 4>&{up[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, CHROMIUM, *_FLAGS, f"--user-data-dir={profile}"], pass_fds=(down[0], up[1]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(down[0])
        os.close(up[1])
        self._to, self._from = os.fdopen(down[1], "wb", 0), os.fdopen(up[0], "rb")
        self._last, self._session, self._events = 0, None, []
        self.complaints, self.requests = [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._to.close()
        self._process.kill()
        self._process.wait()
        self._from.close()

    def call(self, method, **params):
        """The answer to a command of the protocol."""
        self._last += 1
        self._send(self._last, method, params)
        while (answer := self._receive()).get("id") != self._last:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _send(self, number, method, params):
        session = {"sessionId": self._session} if self._session else {}
        self._to.write(json.dumps({"id": number, "method": method, "params": params} | session).encode() + b"\0")

    def _receive(self):
        data = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        message = json.loads(data)
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(params)
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(params)
            self._send(0, "Page.handleJavaScriptDialog", {"accept": True})
        self._events.append(method)
        return message

    def look(self, width, height=800, scheme="light", touch=False):
        """Sets the size of the screen, its colours, and whether it is a phone's."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, address):
        """Loads a page, anew even if it is the same one with another hash."""
        for url in ("about:blank", address):
            self._events.clear()
            self.requests.clear()
            self.call("Page.navigate", url=url)
            while "Page.loadEventFired" not in self._events:
                self._receive()

    def ask(self, expression):
        """The value of an expression of the page's script."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, *keys):
        for key in keys:
            code = _CODES.get(key, ord(key[0].upper()))
            text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def picture(self, path, whole=False):
        """A PNG of what is seen, or of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(b64decode(data))
