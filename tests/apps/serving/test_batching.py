"""Concurrent requests become one call; the model returns the size of its batch."""

import concurrent.futures
import time

import pytest

from tests.support import running


@pytest.fixture(scope="module")
def patient(models):
    """A client of a server that waits long enough to join requests on any machine."""
    with running.client(models / "numbers", max_batch_size=8, batch_timeout_ms=1000) as client:
        yield client


def joined(client, calls):
    """Returns the results of calls in parallel threads while the model is busy."""
    with concurrent.futures.ThreadPoolExecutor(1 + len(calls)) as threads:
        slow = threads.submit(client.rows, "slow", ["a"])
        time.sleep(0.05)
        answers = [future.result() for future in [threads.submit(call) for call in calls]]
        slow.result()
        return answers


def request(client, signature, *rows):
    return lambda: client.rows(signature, list(rows))


def test_joined_requests_receive_their_own_rows(patient):
    answers = joined(patient, [request(patient, "batch_size", f"{number}a", f"{number}b")
                               for number in range(4)])
    assert answers == [[{"text": f"{number}a", "batch": 8}, {"text": f"{number}b", "batch": 8}]
                       for number in range(4)]


def test_a_full_call_starts_at_once_and_the_rest_follow(patient):
    answers = joined(patient, [request(patient, "batch_size", str(number)) for number in range(11)])
    assert sorted(row["batch"] for (row,) in answers) == [3] * 3 + [8] * 8
    assert [row["text"] for (row,) in answers] == [str(number) for number in range(11)]


def test_an_idle_model_answers_at_once(models):
    with running.client(models / "numbers", batch_timeout_ms=60_000) as client:
        begin = time.monotonic()
        for name in "ab":  # The model is idle again after the first.
            assert client.rows("batch_size", [name]) == [{"text": name, "batch": 1}]
        assert time.monotonic() - begin < 30


def test_a_refused_request_does_not_fail_those_joined_with_it(patient):
    *answers, message = joined(patient, [
        *(request(patient, "refuses_bad", name) for name in "abc"),
        lambda: patient.error({"signature_name": "refuses_bad", "instances": ["bad"]})])
    # The joined call was refused, so each request ran alone.
    assert answers == [[{"text": name, "batch": 1}] for name in "abc"]
    assert "bad is not allowed" in message


def test_requests_are_joined_if_the_other_dimensions_agree(patient):
    answers = joined(patient, [
        request(patient, "mixed", {"x": [1] * width, "n": 0, "flag": True})
        for width in (2, 3, 2, 3, 3)])
    assert [(row["sum"], row["rows"]) for (row,) in answers] == [
        (width, width) for width in (2, 3, 2, 3, 3)]


def test_outputs_without_rows_are_never_joined(patient):
    assert joined(patient, [
        lambda texts=texts: patient.predict({"signature_name": "count", "inputs": texts})
        for texts in (["a"], ["b", "c"])]) == [
            (200, {"outputs": {"count": number, "unit": "texts"}}) for number in (1, 2)]
