"""The command and its server over real HTTP: answers, limits, and mistakes in one line."""

import dataclasses
import gzip
import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from electra_tf.apps.demo import demo
from electra_tf.apps.demo.replaced_tokens import Question
from electra_tf.checkpoints import formats, run_directory
from electra_tf.config.sizes import SIZES
from electra_tf.export import conversion
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.text.normalization import Normalization
from tests import command_flags, tiny_networks

QUESTION = {"sentence": "word1 word2 word3s word4", "mask_rate": 0.5, "temperature": 1.0,
            "seed": 7}


def ask(address, content=None, method=None, **headers):
    """Status, headers and body of an answer."""
    body = json.dumps(content).encode() if isinstance(content, dict | list) else content
    try:
        answer = urllib.request.urlopen(urllib.request.Request(
            address, body, {name.replace("_", "-"): value for name, value in headers.items()},
            method=method), timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read()


def test_the_answer_is_the_networks(address, detection):
    status, _, body = ask(f"{address}/replace", QUESTION)
    assert status == 200
    assert json.loads(body) == detection.answer(Question(**QUESTION))
    _, headers, packed = ask(f"{address}/replace", QUESTION, Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip" and gzip.decompress(packed) == body


def test_bad_requests_are_one_line(address):
    for content, status, problem in (
            (b"", 400, "not JSON"), ({"sentence": "a"}, 400, "of another type"),
            (QUESTION | {"top_k": 3}, 400, "'top_k' is unknown"),
            (QUESTION | {"mask_rate": 0}, 400, "'mask_rate' must be .*0.01"),
            (QUESTION | {"temperature": float("nan")}, 400, "NaN"),
            (QUESTION | {"temperature": 11}, 400, "'temperature' must be .*10"),
            (QUESTION | {"seed": 2**32}, 400, "'seed' must be .*4294967296"),
            (QUESTION | {"sentence": " "}, 400, "has no words"),
            (QUESTION | {"sentence": "word1 " * 40}, 400, "has 40 tokens"),
            (QUESTION | {"sentence": "a" * 2**20}, 413, "shorten the sentence")):
        received, _, body = ask(f"{address}/replace", content)
        answer = json.loads(body)
        assert (received, answer.keys()) == (status, {"error"}), content
        assert re.search(problem, answer["error"]) and "\n" not in answer["error"]


def test_other_addresses_methods_and_hosts(address):
    for method, path, expected in (("GET", "/replace", 405), ("POST", "/", 405),
                                   ("GET", "/nowhere", 404), ("GET", "/replace/", 404)):
        status, _, body = ask(address + path, b"{}" if method == "POST" else None, method)
        assert (status, json.loads(body).keys()) == (expected, {"error"})
    assert ask(address, Host="rebound.example")[0] == 400  # tests/apps/serving has more of it.


def test_sentences_are_computed_one_after_the_other_and_few_wait(serving, monkeypatch, detection):
    go, running, most = threading.Event(), [], []

    def answer(question):
        running.append(question)
        most.append(len(running))
        go.wait(20)
        running.pop()
        return {}

    class Slow:
        source = "slow"

    monkeypatch.setattr(Slow, "answer", staticmethod(answer), raising=False)
    statuses = []
    with serving(Slow, max_waiting_requests=2) as address:
        threads = [threading.Thread(target=lambda: statuses.append(
            ask(f"{address}/replace", QUESTION)[0])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(1)
            if len(statuses) == 2:
                break
        assert statuses == [503, 503]
        go.set()
        for thread in threads:
            thread.join()
    assert sorted(statuses) == [200, 200, 503, 503] and most == [1, 1]


@pytest.mark.parametrize(("auc", "verdict"), [
    (0.75, "as expected"), (0.95, "better than expected"), (0.5, "worse than expected")])
def test_a_run_is_compared_with_measured_ones(tmp_path, auc, verdict):
    model = SIZES["tiny"].model
    assert demo.level(tmp_path, model) == ""
    (tmp_path / "settings.json").write_text(json.dumps(
        run_directory.identity(SIZES["tiny"], {}) | Normalization().facts() | {
            "data.max_seq_length": 128, "initial": None, "dataset": "", "vocabulary": ""}))
    (tmp_path / "metrics.jsonl").write_text(json.dumps(
        {"kind": "eval", "step": 1000, "unigram_auc": auc}) + "\n")
    line = demo.level(tmp_path, model)
    assert f"AUC {auc:.2f} " in line and f" 2.0 million tokens: {verdict}" in line
    assert "2 x 128 on Wikipedia and books reach 0.75" in line


def saved(networks, directory, form):
    conversion.write(networks, storage.path(directory), form)
    return str(directory)


def test_mistakes_are_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    networks = tiny_networks.pretrained()
    alone = saved(dataclasses.replace(networks, weights={
        name: value for name, value in networks.weights.items()
        if not name.startswith("generator")}), tmp_path / "run", formats.Format.RUN)
    for arguments, words in (([], "--model_dir is needed"),
                             ([f"--model_dir={tmp_path}"], "holds no checkpoint"),
                             ([f"--model_dir={alone}"], "generator and a discriminator"),
                             ([f"--model_dir={alone}", "--host=203.0.113.1"],
                              "--host=203.0.113.1 --port=0.*an address of this machine")):
        with command_flags.defined(demo.define), pytest.raises(UserError, match=words) as error:
            command_flags.call(demo.main, "--port=0", *arguments)
        assert "\n" not in str(error.value)


@pytest.mark.slow
def test_networks_are_shown_until_a_signal(tmp_path):
    path = saved(tiny_networks.pretrained(), tmp_path / "model", formats.Format.HUGGING_FACE)
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.demo.demo", "--port=0", f"--model_dir={path}"],
        cwd=Path(__file__).parents[3], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", process.stdout.readline())[0]
        status, _, body = ask(f"{address}/replace", QUESTION | {"sentence": "word1 word2"})
        assert status == 200 and len(json.loads(body)["tokens"]) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.communicate()
