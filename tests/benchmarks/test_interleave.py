"""Turns rotate, failures become rows, what doesn't fit in memory waits; no real worker runs."""

import pytest

from benchmarks.harness.process import WorkerFailed
from benchmarks.harness.turns import rotated
from benchmarks.pretraining.interleave import Turns
from benchmarks.pretraining.systems import Role, System
from benchmarks.pretraining.workload import Setting
from tests.benchmarks.workloads import BY_HAND


class FakeWorker:
    """Answers at once; fails at the request of the given number, from 1."""

    def __init__(self, name, log, *, label, fails_at):
        self.name, self.log, self.label, self.fails_at = name, log, label, fails_at
        self.requests, self.closed = 0, False

    def ask(self, request):
        assert not self.closed
        self.requests += 1
        if self.requests == self.fails_at:
            raise WorkerFailed("ran out of luck")
        if "setting" in request:
            return {"label": self.label, "versions": {"fake": "1"}}
        self.log.append((self.name, request["steps"]))
        return {"seconds": 0.5, "loss": 45.0, "peak_bytes": 1000}

    def close(self):
        self.closed = True


def system(name, role=Role.PEER):
    return System(name=name, title=name, role=role, module="fake",
                  setting=Setting(precision="float32"))


def measure(systems, *, rounds=3, labels=None, fails_at=None, has_room=lambda largest: True):
    log, workers = [], {}

    def launch(which):
        workers[which.name] = FakeWorker(
            which.name, log, label=(labels or {}).get(which.name, "float32"),
            fails_at=(fails_at or {}).get(which.name))
        return workers[which.name]

    turns = Turns(workload=BY_HAND, rounds=rounds, steps=5, launch=launch, has_room=has_room,
                  say=lambda line: None)
    results = turns.measure(systems)
    assert all(worker.closed for worker in workers.values())
    return results, log


def test_rotation_begins_with_the_next_each_time():
    assert [rotated("abc", by) for by in range(4)] == [
        ["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"], ["a", "b", "c"]]
    assert rotated([], 3) == []


def test_systems_start_one_by_one_and_then_take_turns_that_rotate():
    results, log = measure([system("a", Role.OURS), system("b"), system("c")])
    assert log[:6] == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("c", 1), ("c", 2)]
    assert [name for name, _ in log[6:]] == list("abc" "bca" "cab")
    assert {steps for _, steps in log[6:]} == {5}
    assert [result.seconds for result in results] == [[0.5] * 3] * 3
    assert [result.label for result in results] == ["a float32", "b float32", "c float32"]


@pytest.mark.parametrize(("request_number", "turns"), [(1, 0), (2, 0), (3, 0), (4, 0), (5, 1)])
def test_a_dying_worker_becomes_a_row_and_the_others_go_on(request_number, turns):
    results, _ = measure([system("a", Role.OURS), system("b"), system("c")],
                         fails_at={"b": request_number})
    assert [result.failure for result in results] == ["", "ran out of luck", ""]
    assert [len(result.seconds) for result in results] == [3, turns, 3]


def test_a_setting_that_turns_out_the_same_is_measured_once():
    # "auto" and "off" of one title, say.
    auto, off = system("auto", Role.OURS), system("off", Role.OURS)
    object.__setattr__(off, "title", "auto")
    results, log = measure([auto, off, system("b")])
    assert [result.name for result in results] == ["auto", "b"]
    assert "off" not in {name for name, _ in log}


def test_what_does_not_fit_waits_and_meets_ours_and_the_rates_again():
    room = iter([True, True, False, False])
    results, log = measure(
        [system("p"), system("q"), system("a", Role.OURS), system("r", Role.RATE)],
        rounds=2, has_room=lambda largest: next(room))
    # a starts, then r and p fit; q doesn't. Next q comes alone.
    turns = [name for name, steps in log if steps == 5]
    assert turns == list("arp" "rpa") + list("arq" "rqa")
    assert [(result.name, len(result.seconds)) for result in results] == [
        ("a", 4), ("r", 4), ("p", 2), ("q", 2)]
