"""The loop's events by step, with made-up parts; single steps and loops on devices."""

import dataclasses
import signal

import numpy as np
import pytest

from electra_tf.config.runtime import RuntimeConfig
from electra_tf.pretraining.trainer import Timetable, Trainer
from electra_tf.pretraining.training_run import run_loop
from tests.support import tiny_run


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

    def on_train(self, totals, step, *, complete):
        assert step == self.step_now
        self.calls.append(("record" if complete else "read", step))

    totals = staticmethod(dict)
    line_is_due = staticmethod(bool)  # False.
    on_checkpoint = on_evaluated = staticmethod(lambda _: None)
    any = staticmethod(lambda facts: facts)
    samples = staticmethod(lambda count: [])

    def save(self, step):
        self.calls.append(("save", step))

    def has_evaluation(self, step):
        return step in self._evaluated

    def evaluate(self, go_on):
        if self.step_now == self._signal_at and self._in_evaluation:
            self.number = signal.SIGTERM
        return {} if go_on(1) else None

    def on_eval(self, results):
        self.calls.append(("evaluate", self.step_now))

    def on_samples(self, samples):
        self.calls.append(("sample", self.step_now))


RUNTIME = RuntimeConfig(log_every_steps=4, save_checkpoints_steps=6, sample_every_steps=6,
                        eval_every_steps=6)


def run(parts, first_step=0, num_steps=9, runtime=RUNTIME, held_out=True, steps_per_loop=1):
    table = Timetable(first_step=first_step, num_steps=num_steps, runtime=runtime,
                      steps_per_loop=steps_per_loop)
    return run_loop(table, parts, parts, parts, parts if held_out else None, parts, parts)


@pytest.mark.parametrize(("most", "counts"), [
    (1, [1] * 9), (2, [1, 2, 1, 2, 2, 1]), (100, [1, 3, 2, 2, 1])])
def test_a_run_reads_samples_saves_and_evaluates_and_loops_end_where_something_is_due(
        most, counts):
    parts = Parts()
    assert run(parts, steps_per_loop=most) is None
    assert parts.counts == counts
    assert parts.calls == [
        ("read", 1), ("record", 4), ("record", 6), ("sample", 6), ("save", 6), ("evaluate", 6),
        ("record", 8), ("record", 9), ("save", 9), ("evaluate", 9)]


@pytest.mark.parametrize(("most", "at", "calls"), [
    (1, 3, [("read", 1), ("record", 3), ("save", 3)]),
    (100, 2, [("read", 1), ("record", 4), ("save", 4)])])
def test_a_signal_ends_it_after_the_loop_on_the_devices_with_a_checkpoint(most, at, calls):
    parts = Parts(signal_at=at)
    assert run(parts, steps_per_loop=most) is signal.SIGTERM
    assert parts.calls == calls


def test_a_signal_at_a_step_of_evaluation_leaves_that_to_the_next_start():
    parts = Parts(signal_at=6)
    assert run(parts) is signal.SIGTERM
    assert parts.calls[-2:] == [("record", 6), ("save", 6)]
    again = Parts(first_step=6)
    assert run(again, first_step=6) is None
    assert again.calls[:2] == [("evaluate", 6), ("read", 7)]
    during = Parts(signal_at=6, signal_in_evaluation=True)
    assert run(during) is signal.SIGTERM
    assert during.calls[-2:] == [("sample", 6), ("save", 6)]


def test_a_finished_run_only_evaluates_what_is_held_out_if_that_is_missing():
    for evaluated, calls in ((9,), []), ((), [("evaluate", 9)]):
        parts = Parts(first_step=9, evaluated=evaluated)
        assert run(parts, first_step=9) is None and parts.calls == calls
    parts = Parts()
    assert run(parts, held_out=False) is None
    assert {name for name, _ in parts.calls} == {"read", "record", "save"}


def test_what_is_to_come_is_what_then_comes():
    names = {"checkpoint": "save", "samples": "sample", "evaluation": "evaluate"}
    for changes in {}, {"eval_every_steps": 0, "sample_every_steps": 0}, {
            "save_checkpoints_steps": 100}:
        runtime = dataclasses.replace(RUNTIME, **changes)
        for first_step in (0, 5, 9):
            table = Timetable(first_step=first_step, num_steps=9, runtime=runtime)
            parts = Parts(first_step=first_step, evaluated=(first_step,))
            run(parts, first_step=first_step, runtime=runtime)
            assert table.to_come(first_step) == {
                name: sum(call == done for call, _ in parts.calls)
                for name, done in names.items()}, changes


def trained(records, counts, *, in_loops, **changes):
    """Runs pieces of so many steps; returns what each piece reports, and all state."""
    run = tiny_run.run_on(records, model__num_layers=1, **changes)
    state = tiny_run.state_of(run)
    batches = run.strategy.distribute_datasets_from_function(
        lambda context: tiny_run.batches(run, 7, context))
    trainer = Trainer(run.strategy, tiny_run.train_step(run, state), batches, in_loops=in_loops)
    totals = []
    for count in counts:
        trainer.run(count)
        totals.append(trainer.totals())
    return totals, [variable.numpy() for variable in state.variables]


@pytest.mark.parametrize("changes", [
    {}, pytest.param({"runtime__distribution_strategy": "mirrored"}, marks=pytest.mark.slow)],
    ids=["one device", "mirrored"])
def test_a_loop_of_the_graph_computes_what_single_steps_do(records, changes):
    expected, weights = trained(records, [1, 4, 2], in_loops=False, **changes)
    totals, looped = trained(records, [1, 4, 2], in_loops=True, **changes)
    assert totals == expected
    for value, other in zip(looped, weights, strict=True):
        np.testing.assert_array_equal(value, other)
