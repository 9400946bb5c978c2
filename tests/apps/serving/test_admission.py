"""What waits has a limit, and nothing is done for those who have left."""

import concurrent.futures
import gzip
import json
import re
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.serving.admission import Admission, AdmissionLimits
from electra_tf.apps.serving.errors import RequestError
from electra_tf.apps.serving.request_body import Limits
from electra_tf.apps.serving.rest_api import Settings
from electra_tf.apps.serving.saved_models import ServedModel, Signature
from electra_tf.apps.serving.waiting import BatchingConfig
from tests.apps.serving import running, sockets


class Held:
    """A model that answers when it is let, and remembers the rows of its calls."""

    def __init__(self):
        self.let_go = threading.Event()
        self.calls = []
        spec = tf.TensorSpec([None], tf.string, "text")
        self.model = ServedModel(name="held", version=1, signature_defs={}, signatures={
            "serving_default": Signature(name="serving_default", inputs={"text": spec},
                                         outputs={"text": spec}, function=self._answer)})

    def _answer(self, text):
        self.calls.append(len(text))
        assert self.let_go.wait(20)
        return [np.array(text, object)]


@pytest.fixture
def held():
    model = Held()
    yield model
    model.let_go.set()


def settings(**limits):
    return Settings(batching=BatchingConfig(max_batch_size=4, batch_timeout_ms=0, parallel_calls=1),
                    admission=AdmissionLimits(**limits), limits=Limits(max_body_bytes=10_000))


def measured(client, name):
    """One of the metrics."""
    text = client.send("GET", "/monitoring/prometheus/metrics")[1]
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])


def until(condition):
    """Waits for what must come soon."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting(client):
    return [measured(client, f"serving_{name}") for name in (
        "waiting_requests", "waiting_rows", "buffered_bytes")]


def body(rows):
    return json.dumps({"instances": ["x"] * rows}).encode()


def test_beyond_the_limit_of_requests_clients_are_told_to_come_again(held):
    with (running.client_of(held.model, settings(max_waiting_requests=3)) as client,
          concurrent.futures.ThreadPoolExecutor(3) as threads):
        accepted = [threads.submit(client.rows, "", ["a"]) for _ in range(3)]
        until(lambda: waiting(client)[0] == 3)
        status, headers, content = client.ask("POST", f"{client.path}:predict", body(1))
        assert (status, headers["Retry-After"]) == (503, "1")
        assert b"--max_waiting_requests" in content
        held.let_go.set()
        assert [each.result() for each in accepted] == [["a"]] * 3
        until(lambda: waiting(client) == [0, 0, 0])
        assert client.rows("", ["b"]) == ["b"]


def test_beyond_the_limit_of_rows_too(held):
    with (running.client_of(held.model, settings(max_waiting_rows=10)) as client,
          concurrent.futures.ThreadPoolExecutor(1) as thread):
        accepted = thread.submit(client.rows, "", ["a"] * 20)  # Alone it is always taken.
        until(lambda: waiting(client)[1] == 20)
        assert "--max_waiting_rows" in client.error({"instances": ["b"]}, 503)
        held.let_go.set()
        assert accepted.result() == ["a"] * 20


def test_beyond_the_limit_of_bytes_too(held):
    with running.client_of(held.model, settings(max_buffered_bytes=5000)) as client:
        assert "--max_buffered_mib" in client.error(b" " * 6000, 413)
        with sockets.connected(client) as slow:
            slow.sendall(sockets.request(f"{client.path}:predict", b" " * 4000)[:-100])
            until(lambda: waiting(client)[2] > 3000)
            assert "too many bytes" in client.error(b" " * 3000, 503)
        until(lambda: waiting(client)[2] == 0)


def test_a_client_that_leaves_takes_its_requests_along(held):
    """30 requests of 1,024 rows, whose clients left, kept a small one waiting for 48.7 s."""
    with (running.client_of(held.model, settings()) as client,
          concurrent.futures.ThreadPoolExecutor(1) as thread):
        for _ in range(30):
            with sockets.connected(client) as leaving:
                leaving.sendall(sockets.request(f"{client.path}:predict", body(100)))
        until(lambda: measured(client, "serving_abandoned_requests_total") == 30)
        assert waiting(client) == [0, 0, 0]
        staying = thread.submit(client.rows, "", ["a"])
        until(lambda: waiting(client)[0] == 1)
        held.let_go.set()
        assert staying.result() == ["a"]
    # At most the call that was running was done for those who left, not their 3,000 rows.
    assert held.calls in ([1], [4, 1])


def test_others_are_answered_between_the_calls_of_a_long_request(held):
    with (running.client_of(held.model, settings()) as client,
          concurrent.futures.ThreadPoolExecutor(2) as threads):
        long = threads.submit(client.rows, "", [str(row) for row in range(100)])
        until(lambda: held.calls == [4])
        short = threads.submit(client.rows, "", ["a"])
        until(lambda: waiting(client)[0] == 2)
        held.let_go.set()
        assert short.result() == ["a"]
        assert long.result() == [str(row) for row in range(100)]
    assert held.calls.index(1) < 5 and sum(held.calls) == 101


def test_a_visit_gives_back_what_it_holds_however_it_ends():
    admission = Admission(AdmissionLimits(max_buffered_bytes=10))
    with pytest.raises(RequestError), admission.visit() as visit:
        visit.hold(4)
        visit.wait()
        visit.wait_with(3)
        assert (admission.bytes, admission.requests, admission.rows) == (4, 1, 3)
        visit.hold(7)
    assert (admission.bytes, admission.requests, admission.rows) == (0, 0, 0)


class TestGzip:
    def predict(self, client, content, **headers):
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.ask("POST", f"{client.path}:predict", content, names)

    def test_a_packed_request_is_unpacked(self, echo):
        status, _, content = self.predict(
            echo, gzip.compress(b'{"instances": ["a"]}'), Content_Encoding="gzip")
        assert (status, json.loads(content)) == (200, {"predictions": ["a"]})

    def test_an_answer_is_packed_for_a_client_that_says_so(self, echo):
        row = "x" * 5000
        asked = json.dumps({"instances": [row]})
        status, headers, content = self.predict(echo, asked, Accept_Encoding="gzip")
        assert (status, headers["Content-Encoding"], headers["Vary"]) == (
            200, "gzip", "Accept-Encoding")
        assert json.loads(gzip.decompress(content)) == {"predictions": [row]}
        assert len(content) < 1000
        _, headers, content = self.predict(echo, asked)
        assert "Content-Encoding" not in headers and len(content) > 5000

    def test_a_bomb_is_refused(self, echo):
        bomb = gzip.compress(b" " * 200_000_000)  # 200 kB.
        status, _, content = self.predict(echo, bomb, Content_Encoding="gzip")
        assert status == 413 and b"unpacked body is longer than" in content

    @pytest.mark.parametrize("damage", [
        lambda packed: packed[:-5], lambda packed: packed + b"more", lambda packed: b"nothing",
        lambda packed: packed[:12] + b"\xff\xff\xff" + packed[15:]])
    def test_what_is_not_gzip_is_refused(self, echo, damage):
        packed = gzip.compress(b'{"instances": ["a"]}')
        status, _, content = self.predict(echo, damage(packed), Content_Encoding="gzip")
        assert status == 400 and b"isn't gzip" in content

    def test_other_ways_of_packing_are_refused(self, echo):
        status, _, content = self.predict(echo, b"{}", Content_Encoding="br")
        assert status == 415 and b"gzip alone" in content
