"""The loop's events by step, with made-up parts; single steps and loops on devices."""

import contextlib
import dataclasses
import io
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.pretraining import PretrainingConfig, TrainingConfig
from electra_tf.config.runtime import RuntimeConfig
from electra_tf.core.signals import STOPPING, Interrupted
from electra_tf.pretraining import loop
from electra_tf.pretraining.steps import Events, StepMetrics, compile_steps
from tests.support import tiny_run


class Parts:
    """Writes down what the loop calls; a signal comes during a step or an evaluation."""

    def __init__(self, first_step=0, signal_at=None, signal_in_evaluation=False, evaluated=()):
        self.calls, self.counts, self.step = [], [], first_step
        self._received, self._signal_at, self._in_evaluation = None, signal_at, signal_in_evaluation
        self._evaluated = evaluated

    def run_steps(self, count):
        self.counts.append(count)
        for _ in range(count):
            self.step += 1
            if self.step == self._signal_at and not self._in_evaluation:
                self._received = signal.SIGTERM

    def received_signal(self, stop):
        return self._received

    def on_train(self, totals, step, *, complete):
        assert step == self.step
        self.calls.append(("record" if complete else "read", step))

    is_line_due = staticmethod(bool)  # False.
    on_start = on_checkpoint = on_evaluated = close = staticmethod(lambda *_: None)
    any = staticmethod(lambda facts: facts)
    samples = staticmethod(lambda count: [])

    def save(self, step):
        if ("save", step) not in self.calls:
            self.calls.append(("save", step))

    def has_evaluation(self, step):
        return step in self._evaluated

    def evaluate(self, keep_evaluating):
        if self.step == self._signal_at and self._in_evaluation:
            self._received = signal.SIGTERM
        return {} if keep_evaluating(1) else None

    def on_eval(self, results):
        self.calls.append(("evaluate", self.step))

    def on_samples(self, samples):
        self.calls.append(("sample", self.step))


RUNTIME = RuntimeConfig(log_every_steps=4, save_checkpoints_steps=6, sample_every_steps=6,
                        eval_every_steps=6)


@pytest.fixture
def train(monkeypatch, tmp_path):
    """Returns a function that trains with `Parts` in place of all that computes and writes."""
    def run(parts, runtime=RUNTIME, held_out=True, steps_per_loop=1):
        state = SimpleNamespace(step=tf.constant(parts.step), model=None,
                                averaged=contextlib.nullcontext)
        for name, part in {
                "_directory_of_reports": lambda run: contextlib.nullcontext(
                    (tmp_path, io.StringIO())),
                "restore": lambda run: (state, parts, []), "distributed": lambda *_: None,
                "TrainStep": lambda *_: None,
                "StepMetrics": lambda: SimpleNamespace(
                    update=lambda results: None, pop=lambda step: {}),
                "compile_steps": lambda *_, in_loops: parts.run_steps,
                "Reporter": lambda *_, out, track: parts,
                "Evaluator": lambda run, model: parts}.items():
            monkeypatch.setattr(loop, name, part)
        monkeypatch.setattr(loop, "Agreement", lambda strategy: parts)
        loop.train(SimpleNamespace(
            config=PretrainingConfig(
                training=TrainingConfig(num_train_steps=9),
                runtime=dataclasses.replace(runtime, steps_per_loop=steps_per_loop)),
            strategy=tf.distribute.get_strategy(), objective=None, finished_at=(), stable_until=0,
            identity={},
            require_records=None, examples=lambda split: held_out, model_dir=tmp_path,
            records=None))

    return run


@pytest.mark.parametrize(("max_steps", "counts"), [
    (1, [1] * 9), (2, [1, 2, 1, 2, 2, 1]), (100, [1, 3, 2, 2, 1])])
def test_every_event_comes_at_its_step_and_loops_end_there(train, max_steps, counts):
    parts = Parts()
    train(parts, steps_per_loop=max_steps)
    assert parts.counts == counts
    assert parts.calls == [
        ("read", 1), ("record", 4), ("record", 6), ("sample", 6), ("save", 6), ("evaluate", 6),
        ("record", 8), ("record", 9), ("save", 9), ("evaluate", 9)]


@pytest.mark.parametrize(("max_steps", "step", "calls"), [
    (1, 3, [("read", 1), ("record", 3), ("save", 3)]),
    (100, 2, [("read", 1), ("record", 4), ("save", 4)])])
def test_a_signal_ends_the_run_after_a_loop_with_a_checkpoint(train, max_steps, step, calls):
    parts = Parts(signal_at=step)
    with pytest.raises(Interrupted) as interrupted:
        train(parts, steps_per_loop=max_steps)
    assert interrupted.value.number in STOPPING and parts.calls == calls


def test_an_evaluation_that_a_signal_prevents_comes_at_the_next_start(train):
    parts = Parts(signal_at=6)
    with pytest.raises(Interrupted):
        train(parts)
    assert parts.calls[-2:] == [("record", 6), ("save", 6)]
    resumed = Parts(first_step=6)
    train(resumed)
    assert resumed.calls[:2] == [("evaluate", 6), ("read", 7)]


@pytest.mark.parametrize("save_every", [6, 4])
def test_a_signal_in_an_evaluation_ends_the_run_with_a_checkpoint(train, save_every):
    parts = Parts(signal_at=6, signal_in_evaluation=True)
    with pytest.raises(Interrupted):
        train(parts, dataclasses.replace(RUNTIME, save_checkpoints_steps=save_every))
    assert parts.calls[-2:] == [("sample", 6), ("save", 6)]


def test_a_finished_run_only_evaluates_held_out_examples_if_missing(train):
    for evaluated, calls in ((9,), []), ((), [("evaluate", 9)]):
        parts = Parts(first_step=9, evaluated=evaluated)
        train(parts)
        assert parts.calls == calls
    parts = Parts()
    train(parts, held_out=False)
    assert {name for name, _ in parts.calls} == {"read", "record", "save"}


def test_the_remaining_events_are_those_that_come(train):
    names = {"checkpoint": "save", "samples": "sample", "evaluation": "evaluate"}
    for changes in {}, {"eval_every_steps": 0, "sample_every_steps": 0}, {
            "save_checkpoints_steps": 100}:
        runtime = dataclasses.replace(RUNTIME, **changes)
        for first_step in (0, 5, 9):
            parts = Parts(first_step=first_step, evaluated=(first_step,))
            train(parts, runtime=runtime)
            events = Events(first_step=first_step, num_steps=9, runtime=runtime)
            remaining = events.remaining(first_step)
            assert {name: remaining[name] for name in names} == {
                name: sum(call == event for call, _ in parts.calls)
                for name, event in names.items()}, changes


def trained(records, counts, *, in_loops, **changes):
    """Runs pieces of so many steps; returns what each piece reports, and all state."""
    run = tiny_run.run_on(records, model__num_layers=1, **changes)
    state = tiny_run.state_of(run)
    batches = run.strategy.distribute_datasets_from_function(
        lambda context: tiny_run.batches(run, 7, context))
    train_steps = compile_steps(tiny_run.train_step(run, state), batches, in_loops=in_loops)
    metrics, totals = StepMetrics(), []
    for count in counts:
        for number in [count] if in_loops else [1] * count:
            metrics.update(train_steps(number))
        totals.append(metrics.pop(count))
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
