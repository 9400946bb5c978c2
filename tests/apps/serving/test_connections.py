"""Clients that are slow, silent, too many, or don't speak HTTP: all get an answer and an end."""

import contextlib
import time

import pytest

from electra_tf.apps.serving.request_body import Limits
from electra_tf.apps.serving.rest_api import Settings
from electra_tf.apps.serving.strict_http import ConnectionLimits
from tests.apps.serving import running, sockets

PREDICT = "/v1/models/echo:predict"


@pytest.fixture(scope="module")
def strict(models):
    with running.client(
            models / "echo",
            Settings(limits=Limits(silence_seconds=0.3, body_timeout_seconds=1)),
            ConnectionLimits(max_connections=4, header_seconds=0.3, idle_seconds=0.3,
                             stalled_seconds=0.3, linger_seconds=0.3)) as client:
        yield client


def ended(connection, within):
    """What arrives until the server closes, which it does in time."""
    begin = time.monotonic()
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    assert time.monotonic() - begin < within
    return received


def test_headers_that_come_slowly_are_given_up(strict):
    with sockets.connected(strict) as connection:
        connection.sendall(b"POST /v1/models/echo:predict HT")
        time.sleep(0.2)
        connection.sendall(b"TP/1.1\r\nHost: x\r\n")  # Another byte doesn't buy more time.
        begin = time.monotonic()
        status, headers, content = sockets.read(connection)
    assert (status, content) == (408, {"error": "the headers took longer than 0.3 s"})
    assert headers[b"connection"] == b"close" and time.monotonic() - begin < 0.25


def test_a_client_that_says_nothing_is_let_go(strict):
    with sockets.connected(strict) as connection:
        assert ended(connection, within=2) == b""


def test_a_connection_without_a_next_request_is_let_go(strict):
    with sockets.connected(strict) as connection:
        connection.sendall(b"GET /v1/models/echo HTTP/1.1\r\nHost: x\r\n\r\n")
        assert ended(connection, within=2).startswith(b"HTTP/1.1 200 ")


def test_a_body_that_falls_silent_is_given_up(strict):
    with sockets.connected(strict) as connection:
        connection.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
                           % PREDICT.encode())
        assert ended(connection, within=2).startswith(b"HTTP/1.1 408 ")


def trickle(connection, content, seconds):
    """Sends a byte again and again, until the other side has had enough."""
    begin = time.monotonic()
    with contextlib.suppress(ConnectionError):
        connection.sendall(content)
        while time.monotonic() - begin < seconds:
            connection.sendall(b" ")
            time.sleep(0.1)
    return time.monotonic() - begin


def test_a_body_that_trickles_is_given_up(strict):
    with sockets.connected(strict) as connection:
        assert trickle(connection, b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n"
                       % PREDICT.encode(), 10) < 5


def test_a_body_that_goes_on_after_its_answer_is_cut(strict):
    with sockets.connected(strict) as connection:
        assert trickle(connection, b"POST /nowhere HTTP/1.1\r\nHost: x\r\n"
                                   b"Content-Length: 999\r\n\r\n", 10) < 5


def test_an_answer_that_nobody_reads_is_given_up(strict):
    body = b'{"instances": ["%s"]}' % (b"x" * 12_000_000)
    with sockets.connected(strict) as connection:
        connection.sendall(sockets.request(PREDICT, body))
        time.sleep(3)
        assert len(ended(connection, within=5)) < 12_000_000


def test_one_client_too_many_is_told_so_and_the_next_is_served(strict):
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(sockets.connected(strict))
        time.sleep(0.1)
        status, headers, content = sockets.exchange(strict, b"")
    assert (status, headers[b"retry-after"]) == (503, b"1")
    assert content["error"].startswith("more than 4 clients are connected")
    time.sleep(0.1)
    assert strict.rows("serving_default", ["a"]) == ["a"]


@pytest.mark.parametrize(("content", "status", "words"), [
    (b"nonsense\r\n\r\n", 400, "isn't HTTP/1.1"),
    (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400, "isn't HTTP/1.1"),
    (b"GET / HTTP/1.1\r\n\r\n", 400, "Missing mandatory Host"),
    (b"GET / HTTP/9.9\r\nHost: x\r\n\r\n", 505, "only HTTP/1.1"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", 400, "Content-Length"),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400,
     "Content-Length"),
    (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 20 + b"\r\n\r\n", 413, "body"),
    (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "Transfer-Encoding"),
    (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, "longer than 8192"),
    (b"GET /" + b"a" * 50_000, 414, "longer than 8192"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 17_000 + b"\r\n\r\n", 431, "than 16384"),
    (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 50_000, 431, "longer than 16384"),
    (f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
     400, "isn't HTTP/1.1"),
    (f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(), 411,
     "Content-Length"),
    (f"POST {PREDICT} HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n".encode(), 413,
     "longer than"),
    (b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, "CONNECT"),
    (b"GET /%ff%fe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, "Not Found"),
    (b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 404, "Not Found"),
    (b"GET /no HTTP/1.1\r\nHost: x\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n",
     404, "Not Found"),
])
def test_what_is_wrong_is_json(strict, content, status, words, capfd):
    received, headers, answer = sockets.exchange(strict, content)
    assert (received, headers[b"content-type"], answer.keys()) == (
        status, b"application/json", {"error"})
    assert words in answer["error"]
    assert capfd.readouterr().err == ""


def test_requests_one_after_the_other_on_one_connection_are_answered(echo):
    one = sockets.request("/v1/models/echo:predict", b'{"instances": ["a"]}').replace(
        b"Connection: close\r\n", b"")
    with sockets.connected(echo) as connection:
        connection.sendall(one * 3)  # Without waiting for answers.
        connection.sendall(sockets.request("/v1/models/echo:predict", b'{"instances": ["b"]}'))
        received = ended(connection, within=10)
    assert received.count(b"HTTP/1.1 200 OK") == 4 and received.count(b'["a"]') == 3
    assert b'["b"]' in received[-40:]
