"""Large, hostile and interrupted requests are answered or refused, and the server continues."""

import concurrent.futures
import contextlib
import gzip
import json
import re
import socket
import struct
import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from electra_tf.apps.serving.models import ModelVersions, ServedModel, Signature, Version
from tests.support import running
from tests.support.attempts import cases, tally
from tests.support.running import until


def model_of(function):
    """Returns a model whose only signature calls a function."""
    spec = tf.TensorSpec([None], tf.string, "text")
    signature = Signature(inputs={"text": spec}, outputs={"text": spec},
                          function=function)
    model = ServedModel(version=1, signatures={"serving_default": signature},
                        signature_defs={})
    return ModelVersions(name="m", directory=None, known={
        1: Version(number=1, state="AVAILABLE", model=model)})


@contextlib.contextmanager
def held(min_held=0, **settings):
    """A client of a model that answers short texts, and others when the event is set."""
    event = threading.Event()

    def answer(text):
        assert len(text[0]) < min_held or event.wait(20)
        return [np.array(text, object)]

    with running.client_of([model_of(answer)], **settings) as client:
        try:
            yield client, event
        finally:
            event.set()


def measured(client, name):
    text = client.send("GET", "/monitoring/prometheus/metrics")[1]
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])


@pytest.mark.parametrize(("limit", "metric", "rows"), [
    ({"max_waiting_rows": 10}, "serving_waiting_rows", 20),
    ({"max_buffered_mib": 1e-4}, "serving_buffered_bytes", 30)])
def test_requests_over_a_limit_receive_503_with_retry_after(limit, metric, rows):
    with (held(**limit) as (client, event),
          concurrent.futures.ThreadPoolExecutor(1) as thread):
        accepted = thread.submit(client.rows, "", ["a"] * rows)  # Alone it is always accepted.
        until(lambda: measured(client, metric) >= rows)
        with contextlib.closing(client.connection()) as connection:
            body = '{"instances": ["b"]}' + " " * 5_000_000  # It is read before the answer.
            connection.request("POST", f"{client.path}:predict", body)
            answer = connection.getresponse()
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
            assert f"--{next(iter(limit))}" in answer.read().decode()
        event.set()
        assert accepted.result() == ["a"] * rows
        until(lambda: measured(client, metric) == 0)
        assert client.rows("", ["b"]) == ["b"]


def test_small_requests_do_not_wait_for_large_ones():
    large = ["a" * 70_000]
    with (held(min_held=2) as (client, event),
          concurrent.futures.ThreadPoolExecutor(2) as threads):
        waiting = [threads.submit(client.rows, "", large) for _ in range(2)]
        until(lambda: measured(client, "serving_waiting_rows") == 2)
        assert client.rows("", ["b"]) == ["b"]
        event.set()
        assert [future.result() for future in waiting] == [large, large]


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
        status = client.exchange(f"POST {client.path}:predict HTTP/1.1\r\nHost: localhost\r\n"
                                 "Connection: close\r\n\r\n".encode())
        assert status.startswith(b"HTTP/1.1 411 ")


def test_pages_of_other_hosts_and_sites_are_refused(echo):
    for host, status in (("evil.example", 400), ("localhost:8501", 200)):
        assert echo.send("GET", "/", headers={"Host": host})[0] == status
    for origin, status in (("http://evil.example", 403), ("null", 403), (echo.address, 200),
                           ("http://127.0.0.1:9", 200)):
        received, text = echo.send("POST", f"{echo.path}:predict", '{"instances": ["a"]}',
                                   {"Origin": origin})
        assert received == status and (status == 200 or "Origin" in json.loads(text)["error"])


def test_huge_and_compressed_bodies_are_refused_unparsed(echo):
    message = echo.error(b'{"instances":[' + b"[]," * 2_000_000 + b"[]]}")
    assert "at most 2,000,000 values" in message
    status, text = echo.send("POST", f"{echo.path}:predict", gzip.compress(b'{"instances": ["a"]}'),
                             {"Content-Encoding": "gzip"})
    assert status == 415 and "Content-Encoding: gzip" in json.loads(text)["error"]


def test_a_half_closed_client_gets_its_answer(echo):
    begin = f"POST {echo.path}:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    request = f'{begin}20\r\n\r\n{{"instances": ["a"]}}'.encode()
    start = time.monotonic()
    assert echo.exchange(request, half_close=True).endswith(b'{"predictions": ["a"]}\n')
    assert time.monotonic() - start < 4  # The connection is closed, not kept alive.
    assert echo.exchange(request[:-3], half_close=True) == b""


def test_disconnected_clients_cause_no_traceback(capfd):
    with held() as (client, event):
        begin = f"POST {client.path}:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
        for content in (b"", b"POST /v1/", f"{begin}500\r\n\r\n{{".encode(),
                        f'{begin}20\r\n\r\n{{"instances": ["a"]}}'.encode()):
            for linger in (0, 1):  # With 1 the kernel resets the connection.
                with contextlib.closing(client.connection()) as connection:
                    connection.connect()
                    connection.sock.sendall(content)
                    connection.sock.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", linger, 0))
        for content in (b"\x16\x03\x01 nonsense\r\n\r\n", b"GET /" + b"a" * 50_000,
                        b"GET / HTTP/1.1\r\n\r\n"):
            assert client.exchange(content).startswith(b"HTTP/1.1 400 ")
        event.set()
        assert client.rows("", ["a"]) == ["a"]
        until(lambda: measured(client, "serving_waiting_rows") == 0)
        capfd.readouterr()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("error", "words"), [
    (tf.errors.InternalError(None, None, "no\nmemory"), "the model failed: no memory"),
    (KeyError("a bug"), "the server failed: KeyError")])
def test_a_failing_model_is_reported_and_the_server_continues(error, words, capfd):
    def fail(_text):
        raise error

    with running.client_of([model_of(fail)]) as client:
        for _ in range(5):  # More than there are parallel calls: each is given back.
            assert client.error({"instances": ["a"]}, 500).startswith(words)
        assert client.get("")[0] == 200
    lines = capfd.readouterr().err.splitlines()
    if isinstance(error, tf.errors.OpError):
        assert lines == [f"{client.path}:predict: {words}"] * 5


ODD = (None, True, False, 0, -1, 2**31, 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf"), "",
       "a", "\ud800", "\x00", "😀" * 50, "a" * 5000, [], {}, [[]], [{}], {"b64": "YQ=="},
       {"b64": "é"}, {"b64": "\ud800"}, {"b64": "a"}, {"b64": 1}, {"b64": None}, {"text": "a"},
       {"text": {"b64": "YQ=="}, "more": 1}, {"": ""}, {"x": [1], "n": 1, "flag": True})
KEYS = ("instances", "inputs", "signature_name", "text", "x", "n", "flag", "", "b64", "\ud800")
SIGNATURES = ("mixed", "batch_size", "raw", "divide", "tokens", "count", "", "\ud800", 1)
JSON = st.recursive(st.sampled_from(ODD), lambda inner: st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3), max_leaves=8)


@pytest.mark.fuzz
@cases(16)
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
