"""A server that answers, refuses or stays silent, on this machine."""

import http.server
import socket
import threading

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks import tfds_source


def check(port):
    tfds_source._require_reachable(f"http://127.0.0.1:{port}", "glue/cola", "Give --data_dir.")


class QuietHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass


def test_a_server_answers_refuses_or_stays_silent(monkeypatch):
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    monkeypatch.setattr(tfds_source, "ANSWER_SECONDS", 0.3)
    with http.server.HTTPServer(("127.0.0.1", 0), QuietHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        check(server.server_port)  # The base class answers HEAD with 501.
        server.shutdown()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        with pytest.raises(UserError, match=(
                r"glue/cola can't be downloaded from http://127.0.0.1:\d+: .*refused.*"
                r"\. Give --data_dir\.$")):
            check(other.getsockname()[1])
        other.listen()
        with pytest.raises(UserError, match="timed out"):
            check(other.getsockname()[1])
