"""Large, long, broken and interrupted requests: an answer or a 4xx, and the server goes on."""

import json
import socket
import time

import pytest
import tensorflow as tf

from electra_tf.apps.serving.request_body import Limits
from electra_tf.apps.serving.rest_api import Settings
from electra_tf.apps.serving.saved_models import ServedModel, Signature
from tests.apps.serving import running


@pytest.fixture(scope="module")
def small(models):
    with running.client(models / "echo", Settings(limits=Limits(
            max_body_bytes=1000, max_request_rows=5, body_timeout_seconds=0.5))) as client:
        yield client


def raw(client, content):
    """What the server sends on a connection that gets these bytes and nothing more."""
    host, port = client.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(content)
        return connection.recv(10_000)


def test_a_text_of_100_000_characters_comes_back(echo):
    text = "wörd 😀 " * 15_000
    assert echo.rows("serving_default", [text, ""]) == [text, ""]


def test_a_body_of_10_megabytes_gets_its_answer(echo):
    text = "x" * 10_000_000
    begin = time.monotonic()
    assert echo.rows("serving_default", [text]) == [text]
    assert time.monotonic() - begin < 20


def test_10_megabytes_of_tiny_rows_are_refused(echo):
    message = echo.error(json.dumps({"instances": ["x"] * 2_000_000}))
    assert "at most 1024 rows" in message and "2000000" in message


def test_10_megabytes_that_are_not_json_are_refused(echo):
    assert "isn't JSON" in echo.error(b"\0" * 10_000_000)


@pytest.mark.parametrize("size", [1001, 20_000])
def test_a_body_over_the_limit_is_refused(small, size):
    assert "longer than 1000 bytes" in small.error(b"x" * size, 413)
    assert small.rows("serving_default", ["a"]) == ["a"]


def test_a_body_of_exactly_the_limit_is_read(small):
    empty = len(json.dumps({"instances": [""]}))
    assert small.predict({"instances": ["x" * (1000 - empty)]})[0] == 200


def test_too_many_rows_are_refused(small):
    assert small.rows("serving_default", ["a"] * 5) == ["a"] * 5
    assert "at most 5 rows" in small.error({"inputs": ["a"] * 6})


def test_a_body_that_never_comes_is_given_up(small):
    answer = raw(small, b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: x\r\n"
                        b"Content-Length: 500\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_what_is_not_http_is_refused(small):
    assert raw(small, b"\x16\x03\x01 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_a_client_that_goes_away_harms_nobody(small):
    host, port = small.address.removeprefix("http://").split(":")
    for content in (b"", b"POST /v1/", b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: x\r\n"
                                       b"Content-Length: 500\r\n\r\n{"):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(content)
    assert small.rows("serving_default", ["a"]) == ["a"]


def test_a_failure_of_ours_is_told_to_everybody_and_the_server_goes_on():
    def function(text):
        raise KeyError("a mistake in the program")

    spec = tf.TensorSpec([None], tf.string, "text")
    wrong = Signature(name="wrong", inputs={"text": spec}, outputs={"text": spec},
                      function=function)
    with running.client_of(ServedModel(
            name="wrong", version=1, signatures={"wrong": wrong}, signature_defs={})) as client:
        for _ in range(5):  # More than there are calls at a time: each is given back.
            message = client.error({"signature_name": "wrong", "instances": ["a"]}, 500)
            assert message.startswith("the server failed: KeyError")
        assert client.get("")[0] == 200
