"""Large, hostile and interrupted requests are answered or refused, and the server continues."""

import concurrent.futures
import contextlib
import gzip
import json
import socket
import struct
import threading

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from electra_tf.apps.serving.models import ServedModel, Signature
from electra_tf.core import http_server
from tests.support import running
from tests.support.attempts import cases, tally
from tests.support.running import until

GOOD = b'{"instances": ["a"]}'


def model_of(function):
    """Returns a model whose only signature calls a function."""
    signature = Signature({"text": tf.TensorSpec([None], tf.string, "text")},
                          lambda text: {"text": function(text)})
    return {"m": ServedModel("1", {"serving_default": signature}, {})}


@contextlib.contextmanager
def held(**settings):
    """A client of a model that answers texts of two or more bytes when the event is set."""
    event, running_calls, most = threading.Event(), [], []

    def answer(text):
        running_calls.append(text)
        most.append(len(running_calls))
        assert len(text[0]) < 2 or event.wait(20)
        running_calls.remove(text)
        return np.array(text, object)

    with running.client_of(model_of(answer), **settings) as client:
        try:
            yield client, event, most
        finally:
            event.set()


def header(client, *lines, method="POST", path=None):
    """Returns the beginning of a request."""
    first = f"{method} {path or client.path + ':predict'} HTTP/1.1"
    return "\r\n".join([first, "Host: localhost", *lines, "", ""]).encode()


def chunk(content):
    return b"%x\r\n%s\r\n" % (len(content), content)


def test_large_requests_run_one_after_another_and_small_ones_meanwhile():
    large = ["a" * 70_000]
    with held() as (client, event, most), concurrent.futures.ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(client.rows, "", large) for _ in range(3)]
        until(lambda: most)
        assert client.rows("", ["b"]) == ["b"]
        event.set()
        assert [future.result() for future in waiting] == [large] * 3
    assert most == [1, 2, 1, 1]


def test_large_bodies_long_texts_and_many_rows_are_refused(models):
    with running.client(models / "echo", max_body_mib=1 / 1024, max_request_rows=5,
                        max_text_mib=1 / 2048) as client:
        empty = len(json.dumps({"instances": [""]}))
        assert client.predict({"instances": ["a", "x" * 500, "x" * (1024 - empty - 509)]})[0] == 200
        for size in (1025, 5_000_000):
            assert "longer than 1024 bytes" in client.error(b"x" * size, 413)
        assert client.rows("", ["a"] * 5) == ["a"] * 5
        assert "at most 5 rows" in client.error({"inputs": ["a"] * 6})
        for text in ("a" * 513, "é" * 257, {"b64": "YWFh" * 171}):
            assert "(--max_text_mib). Received: " in client.error(
                json.dumps({"instances": [text]}, ensure_ascii=False).encode())
        begin = header(client, "Connection: close", "Transfer-Encoding: chunked")
        assert client.exchange(begin + chunk(GOOD) + chunk(b"")).endswith(b'["a"]}\n')
        # The declared length is wrong: http.client would not send this.
        begin = header(client, "Content-Length: 10", "Transfer-Encoding: chunked",
                       "Connection: close")
        answer = client.exchange(begin + chunk(b" " * 2_000) * 500 + chunk(b""))
        assert answer.startswith(b"HTTP/1.1 413 ") and b"longer than 1024 bytes" in answer


def test_pages_of_other_hosts_and_sites_are_refused(echo):
    for host, status in (("evil.example", 400), ("localhost:8501", 200)):
        assert echo.send("GET", "/", headers={"Host": host})[0] == status
    for origin, status in (("http://evil.example", 403), ("null", 403), (echo.address, 200),
                           ("http://127.0.0.1:9", 200)):
        received, text = echo.send("POST", f"{echo.path}:predict", '{"instances": ["a"]}',
                                   {"Origin": origin})
        assert received == status and (status == 200 or "Origin" in json.loads(text)["error"])


def test_compressed_bodies_are_refused_unparsed(echo):
    status, text = echo.send("POST", f"{echo.path}:predict", gzip.compress(GOOD),
                             {"Content-Encoding": "gzip"})
    assert status == 415 and "Content-Encoding: gzip" in json.loads(text)["error"]


def test_a_slow_body_is_refused(echo, monkeypatch):
    monkeypatch.setattr(http_server, "_BODY_SECONDS", 0.3)
    assert echo.exchange(header(echo, "Content-Length: 20") + GOOD[:5]).startswith(
        b"HTTP/1.1 408 ")


def test_disconnected_clients_and_other_protocols_cause_no_traceback(capfd):
    with held() as (client, event, _):
        for content in (b"", b"POST /v1/", header(client, "Content-Length: 500") + b"{",
                        header(client, "Content-Length: 21") + GOOD.replace(b'"a"', b'"aa"')):
            for linger in (0, 1):  # With 1 the kernel resets the connection.
                with contextlib.closing(client.connection()) as connection:
                    connection.connect()
                    connection.sock.sendall(content)
                    connection.sock.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", linger, 0))
        for content in (b"\x16\x03\x01 nonsense\r\n\r\n", b"GET /" + b"a" * 50_000,
                        b"GET / HTTP/1.1\r\n\r\n",
                        header(client, "Content-Length: x")):
            assert client.exchange(content).startswith(b"HTTP/1.1 400 "), content[:50]
        with contextlib.closing(client.connection()) as connection:
            connection.connect()
            connection.sock.sendall(header(client, "Transfer-Encoding: chunked", path="/nothing"))
            until(lambda: connection.sock.recv(1000).endswith(b"}\n"))
            connection.sock.sendall(b"no chunk\r\n")  # After the answer.
            until(lambda: connection.sock.recv(1000) == b"")
        event.set()
        assert client.rows("", ["a"]) == ["a"]
        capfd.readouterr()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("error", "words"), [
    (tf.errors.InternalError(None, None, "no\nmemory"), "the model failed: no memory"),
    (KeyError("a bug"), "the server failed: KeyError")])
def test_a_failing_model_is_reported_and_the_server_continues(error, words, capfd):
    def fail(_text):
        raise error

    with running.client_of(model_of(fail)) as client:
        assert client.error({"instances": ["a"]}, 500).startswith(words)
        assert client.get("")[0] == 200
    assert ("Traceback" in capfd.readouterr().err) == isinstance(error, KeyError)


ODD = (None, True, False, 0, -1, 2**31, 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf"), "",
       "a", "\ud800", "\x00", "😀" * 50, "a" * 5000, [], {}, [[]], [{}], {"b64": "YQ=="},
       {"b64": "é"}, {"b64": "\ud800"}, {"b64": "a"}, {"b64": 1}, {"b64": None}, {"text": "a"},
       {"text": {"b64": "YQ=="}, "more": 1}, {"": ""}, {"x": [1], "n": 1, "flag": True})
KEYS = ("instances", "inputs", "signature_name", "text", "x", "n", "flag", "", "b64", "\ud800")
SIGNATURES = ("mixed", "batch_size", "raw", "divide", "tokens", "count", "", "\ud800", 1)
JSON = st.recursive(st.sampled_from(ODD), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3), max_leaves=8)


@pytest.mark.fuzz
@cases(4)
@given(kind=st.sampled_from(KEYS[:2]), rows=st.lists(JSON, max_size=3) | JSON,
       name=st.sampled_from(SIGNATURES),
       damage=st.none() | st.tuples(st.integers(0, 1000), st.integers(0, 255)))
def test_random_bodies_are_answered_or_refused(numbers, kind, rows, name, damage):
    body = bytearray(json.dumps({kind: rows, "signature_name": name}).encode())
    if damage:
        body[damage[0] % len(body)] = damage[1]
    status, text = numbers.send("POST", f"{numbers.path}:predict", bytes(body))
    answer = json.loads(text)
    tally["HTTP bodies"]["accepted" if status == 200 else "refused"] += 1
    if status != 200:
        assert (status, answer.keys()) == (400, {"error"}), (body, text)
        assert answer["error"].isprintable() and 0 < len(answer["error"]) <= 500
