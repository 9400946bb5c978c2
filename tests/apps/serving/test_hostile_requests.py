"""Thousands of requests that no client should send: an answer or a 4xx, never a 500, never a word
on the server's own output."""

import base64
import json
import random

import pytest

from tests.fuzz.attempts import CASES, tally

SEED = 20261122
ODD = (None, True, False, 0, -1, 2**31, 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf"), "",
       "a", "\ud800", "\x00", "😀" * 50, "a" * 5000, [], {}, [[]], [{}], {"b64": "YQ=="},
       {"b64": "é"}, {"b64": "\ud800"}, {"b64": "a"}, {"b64": 1}, {"b64": None}, {"text": "a"},
       {"text": {"b64": "YQ=="}, "more": 1}, {"": ""}, {"x": [1], "n": 1, "flag": True})
KEYS = ("instances", "inputs", "signature_name", "text", "x", "n", "flag", "", "b64", "\ud800")
SIGNATURES = ("mixed", "batch_size", "raw", "divide", "tokens", "count", "words", "", "\ud800", 1)
RAW = (
    b"", b"{", b"\xff", b"\xef\xbb\xbf{}", b"\0", b"NaN", b"-", b'{"instances": [1e400]}',
    b'{"instances": [-1e999]}', b'{"inputs": ' + b"9" * 5000 + b"}", b"[" * 100_000,
    b'{"a":' * 20_000, b'{"instances": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"instances": ["a"], "instances": ["b"]}', b'{"instances": [{"text": "a", "text": "b"}]}',
    b'{"instances": ["\\ud800"]}', b'{"instances": ["\\udfff\\ud800"]}', b'{"instances": ["\x01"]}',
    '{"instances": ["é"]}'.encode("utf-16"), '{"instances": ["é"]}'.encode("latin-1"),
    b'{"signature_name": "\\ud800\\n\\u001b[31m", "instances": ["a"]}', b'{"\\ud800": 1}',
    b'{"instances": {"b64": "a"}}', b'{"instances": [' + b"[]," * 50_000 + b"[]]}")
PATHS = (
    "/v1/models/numbers/versions/" + "9" * 5000, "/v1/models/numbers/versions/-1",
    "/v1/models/numbers/versions/%D9%A1", "/v1/models/numbers/versions/1e3", "/%00", "/%ff",
    "/v1/models/%F0%9F%98%80", "/v1/models/numbers/versions/", "/v1/models/", "//",
    "/v1/models/a/b/c",
    "/v1/models/numbers/versions/" + "9" * 5000 + ":predict", "/v1/models/%0a%1b%5b31m:predict",
    "/v1/models/numbers:" + "p" * 3000, "/?model=%00", "/?model=%ff&model=x", "/v1/models/numbers/",
    "/monitoring/prometheus/metrics/x")


def value(draw: random.Random, depth: int):
    """Any JSON value."""
    kind = draw.random()
    if depth == 0 or kind < 0.5:
        return draw.choice(ODD)
    if kind < 0.75:
        return [value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {draw.choice(KEYS): value(draw, depth - 1) for _ in range(draw.randrange(4))}


def body(draw: random.Random) -> bytes:
    """A request of the right form, or nearly, with anything in it; sometimes damaged."""
    content = {draw.choice(KEYS[:2]): [value(draw, 3) for _ in range(draw.randrange(1, 4))]
               if draw.random() < 0.7 else value(draw, 4)}
    if draw.random() < 0.8:
        content["signature_name"] = draw.choice(SIGNATURES)
    if draw.random() < 0.1:
        content[draw.choice(KEYS)] = value(draw, 2)
    text = bytearray(json.dumps(content).encode())
    while draw.random() < 0.2:
        text[draw.randrange(len(text))] = draw.randrange(256)
    return bytes(text)


def check(received, allowed=(200, 400, 404, 405, 413)):
    status, headers, content = received
    assert status in allowed, content
    if status != 200:
        assert headers["Content-Type"] == "application/json"
        answer = json.loads(content)
        assert answer.keys() == {"error"} and answer["error"].isprintable()
        assert 0 < len(answer["error"]) < 600
    return status


@pytest.mark.fuzz
def test_bodies_of_all_kinds_are_answered_or_refused(numbers, capfd):
    draw, path = random.Random(SEED + CASES), f"{numbers.path}:predict"  # Others in `make fuzz`.
    statuses = [check(numbers.ask("POST", path, body(draw))) for _ in range(max(1500, 3 * CASES))]
    assert statuses.count(200) > 20 and statuses.count(400) > 500
    tally["HTTP bodies"].update(accepted=statuses.count(200),
                                refused=len(statuses) - statuses.count(200))
    assert capfd.readouterr() == ("", "")


@pytest.mark.fuzz
@pytest.mark.parametrize("content", RAW, ids=range(len(RAW)))
def test_broken_bodies_are_refused(numbers, content, capfd):
    assert check(numbers.ask("POST", f"{numbers.path}:predict", content)) == 400
    assert capfd.readouterr() == ("", "")


@pytest.mark.fuzz
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "X"])
@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
def test_addresses_of_all_kinds_are_refused(numbers, method, path, capfd):
    assert check(numbers.ask(method, path, b"{}")) in (400, 404, 405)
    assert capfd.readouterr() == ("", "")


def test_base64_of_other_characters_is_refused(numbers):
    for text in ("é", "\ud800", "a", "====", "YQ", "Y Q=="):
        message = numbers.error({"signature_name": "raw", "instances": [{"b64": text}]})
        assert message.startswith("input 'image_bytes': isn't base64")


def test_all_bytes_come_back(numbers):
    every = base64.b64encode(bytes(range(256))).decode()
    (row,) = numbers.rows("raw", [{"b64": every}])
    assert row["copy_bytes"] == {"b64": every}
