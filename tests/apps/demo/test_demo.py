"""The command and its server over real HTTP: answers, limits, errors and the page."""

import concurrent.futures
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import types
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from electra_tf.apps.demo import demo
from electra_tf.apps.demo import server as demo_server
from electra_tf.apps.demo.replaced_tokens import DemoRequest
from electra_tf.formats import pretrained
from electra_tf.reporting import pages
from tests.support import browser, command_flags, tiny_networks
from tests.support.refusals import refused
from tests.support.running import until

QUESTION = {"sentence": "word1 word2 word3s word4", "mask_rate": 0.5, "temperature": 1.0,
            "seed": 7}


@contextlib.contextmanager
def serving(detection, **limits):
    """Yields the address of a running server."""
    server = demo_server.server(detection, example=DemoRequest(
        sentence="word1 word2", mask_rate=0.25, temperature=1.0, seed=1), **limits)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def address(detection):
    with serving(detection) as url:
        yield url


def ask(address, content=None, method=None, **headers):
    """Returns the status, the headers and the body of an answer."""
    body = json.dumps(content).encode() if isinstance(content, dict | list) else content
    try:
        answer = urllib.request.urlopen(urllib.request.Request(
            address, body, {name.replace("_", "-"): value for name, value in headers.items()},
            method=method), timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        return answer.status, answer.headers, answer.read()


def test_an_answer_contains_the_outputs_of_the_networks(address, detection):
    status, _, body = ask(f"{address}/replace", QUESTION)
    assert status == 200
    assert json.loads(body) == detection.answer(DemoRequest(**QUESTION))
    assert ask(address, Host="rebound.example")[0] == 400
    status, _, body = ask(f"{address}/replace")
    assert (status, json.loads(body).keys()) == (405, {"error"})


def test_invalid_requests_are_refused_in_one_line(address):
    for content, status, problem in (
            (b"", 400, "not JSON"), ({"sentence": "a"}, 400, "'mask_rate' is missing"),
            (QUESTION | {"mask_rate": 0}, 400, "'mask_rate' must be .*0.01"),
            (QUESTION | {"temperature": float("nan")}, 400, "NaN"),
            (QUESTION | {"seed": 2**32}, 400, "'seed' must be .*4294967296"),
            (QUESTION | {"sentence": "word1 " * 40}, 400, "has 40 tokens"),
            (QUESTION | {"sentence": "a" * 2**20}, 413, "shorten the sentence")):
        received, _, body = ask(f"{address}/replace", content)
        answer = json.loads(body)
        assert (received, answer.keys()) == (status, {"error"}), content
        assert re.search(problem, answer["error"]) and "\n" not in answer["error"]


def test_one_sentence_is_computed_at_a_time_and_few_wait():
    event, running, parallel = threading.Event(), [], []

    def answer(request):
        running.append(request)
        parallel.append(len(running))
        event.wait(20)
        running.pop()
        return {}

    statuses, slow = [], types.SimpleNamespace(source="slow", answer=answer)
    with (serving(slow, max_waiting_requests=2) as address,
          concurrent.futures.ThreadPoolExecutor(4) as threads):
        for _ in range(4):
            threads.submit(lambda: statuses.append(ask(f"{address}/replace", QUESTION)[0]))
        until(lambda: len(statuses) == 2)
        assert statuses == [503, 503]
        event.set()
    assert statuses == [503, 503, 200, 200] and parallel == [1, 1]


def test_wrong_flags_are_refused(checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    pretrained.write(tiny_networks.without(checkpoint, "generator"), alone := tmp_path / "run",
                     pretrained.Format.RUN)
    for arguments, words in (([], "--model_dir is needed"),
                             ([f"--model_dir={tmp_path}"], "holds no checkpoint"),
                             ([f"--model_dir={alone}"], "generator and a discriminator"),
                             ([f"--model_dir={alone}", "--host=203.0.113.1"],
                              "--host=203.0.113.1 --port=0.*an address of this machine")):
        with refused(words):
            command_flags.run(demo, "--port=0", *arguments)


@pytest.mark.slow
def test_the_program_serves_until_a_signal(pair):
    process = subprocess.Popen(
        [sys.executable, "-m", "electra_tf.apps.demo.demo", "--port=0", f"--model_dir={pair}"],
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


def test_the_headers_of_the_page_forbid_loading(address):
    status, headers, content = ask(address)
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert all(headers[name] == value for name, value in pages.HEADERS.items())
    assert "the tiny networks" in content.decode()


@browser.in_a_browser
class TestPage:
    def ask(self, page, address):
        """Opens the page and asks with the keyboard alone."""
        page.open(address)
        page.wait_for("!document.getElementById('result').hidden")
        page.script("document.getElementById('sentence').value = '';"
                    "document.getElementById('sentence').focus()")
        page.keys("word1 word2 word3s word4, word5 word6ing word7 word8.")
        self.change(page, lambda: page.hold("\ue009", "\ue007"))

    def change(self, page, act):
        """Waits until the page shows another answer, or an error."""
        page.script("window.before = document.getElementById('raw').textContent")
        act()
        page.wait_for("document.getElementById('raw').textContent !== window.before"
                      " || !document.getElementById('error').hidden")

    def slide(self, page, name, value):
        self.change(page, lambda: page.script(
            "const slider = document.getElementById(arguments[0]); slider.value = arguments[1];"
            "for (const kind of ['input', 'change']) slider.dispatchEvent(new Event(kind))",
            name, value))

    def test_words_masks_verdicts_and_sliders(self, page, address):
        self.ask(page, address)
        assert len(page.texts_of("#masked > li")) == 10  # Pieces stand with their words.
        assert page.texts_of(".slot") == ["[MASK] 1", "[MASK] 2", "[MASK] 3"]
        tokens = page.texts_of("#judged .token")
        assert len(tokens) == 12
        (summary,) = page.texts_of("#summary[role=status]")
        assert summary.startswith("3 of 12 tokens filled in: ")
        self.change(page, lambda: page.script("document.getElementById('again').click()"))
        assert page.texts_of("#judged .token") != tokens
        masked = page.texts_of("#masked > li")
        self.slide(page, "temperature", -40)
        assert page.texts_of("#temperature-shown") == ["0.01"]
        assert page.texts_of("#masked > li") == masked
        assert "softmax(logits / 0.01)" in page.texts_of("#candidates p")[0]
        self.slide(page, "rate", 90)
        assert page.texts_of("#rate-shown") == ["90 %"]
        assert len(page.texts_of(".slot")) == 11
