"""What the loop does at which step, with made-up parts."""

import dataclasses
import signal

import pytest

from electra_tf.config.runtime import RuntimeConfig
from electra_tf.pretraining.loop import Loop
from electra_tf.pretraining.timetable import Timetable


class Parts:
    """Writes down what the loop calls; a signal comes during a step or an evaluation."""

    def __init__(self, first_step=0, signal_at=None, signal_in_evaluation=False, evaluated=()):
        self.calls, self.counts, self.step_now = [], [], first_step
        self.number = None
        self._signal_at, self._in_evaluation = signal_at, signal_in_evaluation
        self._evaluated = evaluated

    def run(self, count):
        self.counts.append(count)
        for _ in range(count):
            self.step_now += 1
            if self.step_now == self._signal_at and not self._in_evaluation:
                self.number = signal.SIGTERM

    def totals(self):
        return {}

    def on_train(self, totals, step, *, complete):
        assert step == self.step_now
        self.calls.append(("record" if complete else "read", step))

    def line_is_due(self):
        return False

    def save(self, step, check_interval):
        self.calls.append(("save", step))

    def has_evaluation(self, step):
        return step in self._evaluated

    def aside(self, _):
        pass

    on_eval = on_evaluated = on_checkpoint = aside

    def any(self, facts):
        return facts

    def evaluate(self, go_on):
        if self.step_now == self._signal_at and self._in_evaluation:
            self.number = signal.SIGTERM
        return {} if go_on(1) else None

    def report(self, results, step):
        self.calls.append(("evaluate", step))

    def samples(self):
        return ""

    def on_samples(self, markdown):
        self.calls.append(("sample", self.step_now))


RUNTIME = RuntimeConfig(log_every_steps=4, save_checkpoints_steps=6, sample_every_steps=6,
                        eval_every_steps=6)


def run(parts, first_step=0, num_steps=9, runtime=RUNTIME, held_out=True, steps_per_loop=1,
        turns=None):
    table = Timetable(first_step=first_step, num_steps=num_steps, runtime=runtime,
                      steps_per_loop=steps_per_loop)
    return Loop(timetable=table, trainer=parts, manager=parts, reporter=parts,
                held_out=parts if held_out else None, request=parts, workers=parts,
                turns=turns or {}).run()


def test_a_run_reads_first_then_samples_saves_and_evaluates():
    parts = Parts()
    assert run(parts) is None
    assert parts.calls == [
        ("read", 1), ("record", 4), ("record", 6), ("sample", 6), ("save", 6), ("evaluate", 6),
        ("record", 8), ("record", 9), ("save", 9), ("evaluate", 9)]


@pytest.mark.parametrize(("most", "counts"), [
    (1, [1] * 9), (2, [1, 2, 1, 2, 2, 1]), (100, [1, 3, 2, 2, 1])])
def test_a_loop_on_the_devices_ends_where_something_is_due(most, counts):
    parts, one_by_one = Parts(), Parts()
    run(one_by_one)
    assert run(parts, steps_per_loop=most) is None
    assert parts.counts == counts
    assert parts.calls == one_by_one.calls


def test_a_loop_on_the_devices_ends_before_a_turn():
    parts = Parts()
    seen = []
    run(parts, steps_per_loop=100, turns={3: lambda: seen.append(parts.step_now)})
    assert parts.counts == [1, 2, 1, 2, 2, 1]
    assert seen == [3]


def test_a_signal_waits_for_the_end_of_the_loop_on_the_devices():
    parts = Parts(signal_at=2)
    assert run(parts, steps_per_loop=100) is signal.SIGTERM
    assert parts.calls == [("read", 1), ("record", 4), ("save", 4)]


def test_a_signal_ends_it_after_the_step_with_a_record_and_a_checkpoint():
    parts = Parts(signal_at=3)
    assert run(parts) is signal.SIGTERM
    assert parts.calls == [("read", 1), ("record", 3), ("save", 3)]


def test_a_signal_at_a_step_of_evaluation_leaves_that_to_the_next_start():
    parts = Parts(signal_at=6)
    assert run(parts) is signal.SIGTERM
    assert parts.calls[-2:] == [("record", 6), ("save", 6)]
    again = Parts(first_step=6)
    assert run(again, first_step=6) is None
    assert again.calls[:2] == [("evaluate", 6), ("read", 7)]


def test_a_signal_during_an_evaluation_ends_that():
    parts = Parts(signal_at=6, signal_in_evaluation=True)
    assert run(parts) is signal.SIGTERM
    assert parts.calls[-2:] == [("sample", 6), ("save", 6)]


def test_a_finished_run_only_evaluates_if_that_is_missing():
    for evaluated, calls in ((9,), []), ((), [("evaluate", 9)]):
        parts = Parts(first_step=9, evaluated=evaluated)
        assert run(parts, first_step=9) is None
        assert parts.calls == calls


def test_nothing_held_out_is_neither_scored_nor_sampled():
    parts = Parts()
    assert run(parts, held_out=False) is None
    assert {name for name, _ in parts.calls} == {"read", "record", "save"}


def test_what_is_to_come_is_what_then_comes():
    names = {"checkpoint": "save", "samples": "sample", "evaluation": "evaluate"}
    for changes in ({}, {"eval_every_steps": 0, "sample_every_steps": 0},
                    {"save_checkpoints_steps": 100}, {"log_every_steps": 1}):
        runtime = dataclasses.replace(RUNTIME, **changes)
        for first_step in (0, 5, 9):
            table = Timetable(first_step=first_step, num_steps=9, runtime=runtime)
            parts = Parts(first_step=first_step, evaluated=(first_step,))
            run(parts, first_step=first_step, runtime=runtime)
            assert table.to_come(first_step) == {
                name: sum(call == done for call, _ in parts.calls)
                for name, done in names.items()}, changes
