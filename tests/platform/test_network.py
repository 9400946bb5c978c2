"""A server that answers, refuses or stays silent, on this machine."""

import http.server
import socket
import threading
import time

import pytest

from electra_tf.platform import network
from electra_tf.platform.errors import UserError


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def check(port):
    network.require_reachable(f"http://127.0.0.1:{port}", "glue/cola", "Give --data_dir.")


def test_every_status_is_an_answer():
    # The base class answers HEAD with 501.
    server = http.server.HTTPServer(("127.0.0.1", 0), QuietHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        check(server.server_port)
    finally:
        server.shutdown()
        server.server_close()


class QuietHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_closed_port_is_one_line():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(UserError, match=(
                r"glue/cola can't be downloaded from http://127.0.0.1:\d+: .*refused.*"
                r"\. Give --data_dir\.$")):
            check(unused.getsockname()[1])


def test_silence_ends_after_the_limit(monkeypatch):
    monkeypatch.setattr(network, "SECONDS", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        began = time.monotonic()
        with pytest.raises(UserError, match="no answer within 0.3 s|timed out"):
            check(silent.getsockname()[1])
        assert time.monotonic() - began < 5


def test_a_resolver_without_a_limit_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(network, "SECONDS", 0.2)
    released = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: released.wait(30))
    began = time.monotonic()
    with pytest.raises(UserError, match="no answer within 0.2 s"):
        check(1)
    assert time.monotonic() - began < 5
    released.set()
