"""Headless Chromium, driven by ChromeDriver over W3C WebDriver's HTTP."""

import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)
DRIVER = shutil.which("chromedriver")

in_a_browser = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="needs Chromium and ChromeDriver (Debian: apt-get install chromium chromium-driver)")
_OPTIONS = {"binary": CHROMIUM, "args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                                         "--disable-dev-shm-usage", "--window-size=900,900"]}


class Browser:
    """One page."""

    def __init__(self, session: str):
        self._session = session

    def open(self, address: str) -> None:
        _post(f"{self._session}/url", {"url": address})

    def script(self, code: str, *arguments: Any) -> Any:
        return _post(f"{self._session}/execute/sync", {"script": code, "args": arguments})

    def texts_of(self, selector: str) -> list[str]:
        """The text of every element that a selector finds."""
        return self.script("return [...document.querySelectorAll(arguments[0])]"
                           ".map(node => node.textContent)", selector)

    def wait_for(self, expression: str) -> Any:
        """The value of an expression once it is true."""
        deadline = time.monotonic() + 20
        while not (value := self.script(f"return {expression}")):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.05)
        return value

    def keys(self, text: str) -> None:
        """Types on the keyboard, wherever the focus is; "\ue004" is Tab, "\ue009" Ctrl."""
        self._press([(kind, key) for key in text for kind in ("keyDown", "keyUp")])

    def hold(self, modifier: str, key: str) -> None:
        self._press([("keyDown", modifier), ("keyDown", key), ("keyUp", key), ("keyUp", modifier)])

    def _press(self, presses: list[tuple[str, str]]) -> None:
        actions = [{"type": kind, "value": value} for kind, value in presses]
        _post(f"{self._session}/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser that is closed afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(urllib.error.URLError):
                if _send(urllib.request.Request(f"{address}/status"))["ready"]:
                    break
            time.sleep(0.05)
        capabilities = {"alwaysMatch": {"goog:chromeOptions": _OPTIONS}}
        session = _post(f"{address}/session", {"capabilities": capabilities})["sessionId"]
        try:
            yield Browser(f"{address}/session/{session}")
        finally:
            _send(urllib.request.Request(f"{address}/session/{session}", method="DELETE"))
    finally:
        driver.terminate()
        driver.wait()


def _post(address: str, content: dict) -> Any:
    return _send(urllib.request.Request(address, json.dumps(content).encode()))


def _send(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["value"]
