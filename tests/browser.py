"""Headless Chromium over its DevTools pipe: opens a page, clicks, asks, prints, and notes errors and requests.

The pipe (``--remote-debugging-pipe``: JSON messages that end in a zero byte, on descriptors 3 and 4) needs no port and
no library.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
)


class Page:
    """One tab. ``errors`` holds console errors and uncaught exceptions, ``requests`` the addresses that were asked for."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._seen: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, file: Path, width: int = 1280, height: int = 900) -> None:
        phone = width < 500
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone
        )
        self._seen.clear()
        self.call("Page.navigate", url=file.resolve().as_uri())
        while "Page.loadEventFired" not in self._seen:
            self._receive()

    def ask(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, expression: str) -> None:
        """Some of what a click begins comes after it has returned: events of elements, steps within the page."""
        end = time.monotonic() + 60
        while not self.ask(expression):
            assert time.monotonic() < end, f"{expression} is not so after 60 s"
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """A real click: scrolled into view, pressed and released in the middle of the element."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.ask(f"{element}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.ask(f"(() => {{const r = {element}.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]}})()")
        x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def pdf(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = os.read(self._from, 1 << 20)
            assert chunk, "Chromium ended"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        self._seen.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser of its own, with its own profile folder; ended at the end."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "Chromium is needed: apt-get install chromium"
    read_in, to_browser = os.pipe()
    from_browser, write_out = os.pipe()
    command = f"exec {shlex.quote(program)} {FLAGS} --user-data-dir={shlex.quote(str(profile))} 3<&{read_in} 4>&{write_out}"
    process = subprocess.Popen(
        ["bash", "-c", command], pass_fds=(read_in, write_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(read_in)
    os.close(write_out)
    try:
        yield Page(to_browser, from_browser)
    finally:
        # Chromium ends by itself, with all that it started, when its pipe is closed.
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
