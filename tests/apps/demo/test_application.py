"""What the page asks, over real HTTP."""

import dataclasses
import gzip
import json

import pytest

from electra_tf.apps.demo.replaced_tokens import Question

QUESTION = {"sentence": "word1 word2 word3s word4", "mask_rate": 0.5, "temperature": 1.0,
            "seed": 7}


def post(client, content):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    status, text = client.send("POST", "/replace", body)
    return status, json.loads(text)


def test_the_answer_is_the_networks(client, detection):
    status, answer = post(client, QUESTION)
    assert status == 200
    assert answer == dataclasses.asdict(detection.answer(Question(**QUESTION)))


def test_packed_bodies_and_answers(client):
    status, headers, body = client.ask(
        "POST", "/replace", gzip.compress(json.dumps(QUESTION).encode()),
        {"Content-Encoding": "gzip", "Accept-Encoding": "gzip"})
    assert status == 200 and headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(body)) == post(client, QUESTION)[1]


def without(name):
    return {key: value for key, value in QUESTION.items() if key != name}


@pytest.mark.parametrize(("content", "status", "problem"), [
    (b"", 400, "not JSON"),
    (b"sentence=word1", 400, "not JSON"),
    (b"\xff", 400, "not UTF-8"),
    (b"[" * 5000, 400, "nested deeper"),
    ([QUESTION], 400, "must be an object"),
    (QUESTION | {"top_k": 3}, 400, "'top_k' is unknown"),
    (without("seed"), 400, "'seed' is missing"),
    (b'{"sentence": "a", "sentence": "b"}', 400, "stands twice"),
    (QUESTION | {"sentence": 1}, 400, "'sentence' must be a string"),
    (QUESTION | {"mask_rate": "0.5"}, 400, "'mask_rate' must be a number"),
    (QUESTION | {"mask_rate": True}, 400, "'mask_rate' must be a number"),
    (QUESTION | {"mask_rate": None}, 400, "'mask_rate' must be a number"),
    (QUESTION | {"mask_rate": 0}, 400, "mask_rate must be from 0.01 to 0.9"),
    (QUESTION | {"mask_rate": 0.95}, 400, "mask_rate must be from 0.01 to 0.9"),
    (QUESTION | {"temperature": float("nan")}, 400, "NaN is no JSON"),
    (QUESTION | {"temperature": float("inf")}, 400, "Infinity is no JSON"),
    (QUESTION | {"temperature": 0}, 400, "temperature must be from 0.01 to 10"),
    (QUESTION | {"seed": 1.5}, 400, "'seed' must be a whole number"),
    (QUESTION | {"seed": -1}, 400, "seed must be from 0"),
    (QUESTION | {"seed": 10**30}, 400, "past 64 bits"),
    (QUESTION | {"sentence": ""}, 400, "has no words"),
    (QUESTION | {"sentence": "word1 " * 40}, 400, "has 40 tokens"),
    (QUESTION | {"sentence": "a\x07b"}, 400, "control characters"),
    (QUESTION | {"sentence": "a\0b"}, 400, "NUL"),
    (QUESTION | {"sentence": "a" * 30_000}, 400, "at most 20,000 characters"),
    (QUESTION | {"sentence": "a" * 2**20}, 413, "shorten the sentence"),
])
def test_bad_requests_are_one_line(client, content, status, problem):
    received, answer = post(client, content)
    assert (received, answer.keys()) == (status, {"error"})
    assert problem in answer["error"] and "\n" not in answer["error"]
    assert "--max_body" not in answer["error"]


def test_other_addresses_and_methods(client):
    for method, path, expected in (("GET", "/replace", 405), ("POST", "/", 405),
                                   ("GET", "/nowhere", 404), ("GET", "/replace/", 404)):
        status, text = client.send(method, path, b"{}" if method == "POST" else None)
        assert (status, json.loads(text).keys()) == (expected, {"error"})


def test_gzip_that_unpacks_to_too_much(client):
    status, _, body = client.ask("POST", "/replace", gzip.compress(b" " * 2**20),
                                 {"Content-Encoding": "gzip"})
    assert status == 413 and "shorten the sentence" in json.loads(body)["error"]
