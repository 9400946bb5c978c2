"""Intervals, lines and estimates of a run, with a made-up clock."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.pretraining.reporter import Reporter
from electra_tf.pretraining.steps import Events
from electra_tf.reporting.metrics_log import read_metrics
from tests.support import tiny_run
from tests.support.clock import Clock


def reporter(path, out=None, first_step=0, num_steps=10, clock=None, track=lambda *_: None,
             **runtime):
    """The reporter of a run of 100 tokens a step, on devices of an unknown peak."""
    config = tiny_run.config(
        training__train_batch_size=4, training__num_train_steps=num_steps,
        **{f"runtime__{name}": value for name, value in (
            {"log_every_steps": 4, "save_checkpoints_steps": 6} | runtime).items()})
    run = SimpleNamespace(
        config=config, length=25, strategy=None, rows=lambda split: 8,
        objective=SimpleNamespace(network_specs=lambda: ()))
    table = Events(first_step=first_step, num_steps=num_steps, runtime=config.runtime)
    return Reporter(run, path, table, out=out or io.StringIO(), track=track,
                    clock=clock or Clock())


def train(report, totals, step):
    report.on_train(totals, step, complete=report.events.is_due("log", step))


def totals(loss, weight=1.0):
    return {"loss": (loss, 1.0), "generator_loss": (loss * weight, weight),
            "learning_rate": (0.5, 1.0)}


def records(path):
    return read_metrics(path / "metrics.jsonl")


def test_means_are_weighted_over_intervals_up_to_multiples_and_the_end(tmp_path):
    tracked = []
    report = reporter(tmp_path, track=lambda *report: tracked.append(report))
    block = np.ones(30_000_000)
    train(report, totals(2.0, weight=30.0) | {"discriminator_precision": (0.0, 0.0)}, 1)
    train(report, totals(6.0, weight=10.0), 4)
    for step in range(5, 11):
        train(report, totals(1.0), step)
    written = records(tmp_path)
    assert [record["step"] for record in written] == [4, 6, 8, 10]
    assert written[0]["loss"] == pytest.approx((2.0 + 6.0) / 2)
    assert written[0]["generator_loss"] == pytest.approx((2 * 30 + 6 * 10) / 40)
    assert written[0]["discriminator_precision"] == 0.0  # Of no detections.
    assert block.nbytes < written[0]["peak_memory_bytes"] < 1e12
    assert [step for step, _ in tracked] == [4, 6, 8, 10]
    assert tracked[0][1]["train/generator_loss"] == pytest.approx((2 * 30 + 6 * 10) / 40)


def test_quick_steps_print_a_line_a_second_and_are_all_recorded(tmp_path):
    out, clock = io.StringIO(), Clock()
    report = reporter(tmp_path, out, num_steps=20, clock=clock, log_every_steps=1)
    for step in range(1, 21):
        train(report, totals(1.0), step)
        clock.now += 0.25
    lines = [line for line in out.getvalue().splitlines() if line.startswith("step")]
    assert (len(records(tmp_path)), len(lines)) == (20, 5)
    assert lines[-1].startswith("step 20/20")


def test_the_first_step_is_timed_apart_and_gives_no_throughput(tmp_path):
    out, clock = io.StringIO(), Clock()
    report = reporter(tmp_path, out, first_step=3, clock=clock)
    for step, seconds in (4, 5.0), (6, 2.0):
        clock.now += seconds
        train(report, totals(1.0), step)
    first, line = out.getvalue().splitlines()
    assert first == "first step after 5.0 s"
    assert line.startswith("step  6/10  loss  1.000  generator  1.000") and "100 tok/s" in line
    assert [record.get("tokens_per_second") for record in records(tmp_path)] == [None, 100.0]


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(tmp_path):
    report = reporter(tmp_path)
    for step in range(1, 9):
        train(report, totals(1.0), step)
    report.on_eval({"loss": 3.0})
    assert report.has_evaluation(8) and reporter(tmp_path, first_step=8).has_evaluation(8)
    assert not reporter(tmp_path, first_step=6).has_evaluation(8)
    assert [record["step"] for record in records(tmp_path)] == [4, 6]


def test_a_line_comes_after_the_seconds_without_one_and_is_not_written(tmp_path):
    out, clock = io.StringIO(), Clock()
    report = reporter(tmp_path, out, num_steps=100, clock=clock, log_every_steps=50,
                      save_checkpoints_steps=50, log_every_seconds=30.0)
    steps = []
    for step in range(1, 15):
        clock.now += 9.0
        if report.is_line_due() or step == 1:
            train(report, totals(1.0), step)
            steps.append(step)
    assert steps == [1, 5, 9, 13]  # The first step of 9 s after 30 s.
    assert len(out.getvalue().splitlines()) == 4
    assert not (tmp_path / "metrics.jsonl").exists()
    train(report, totals(1.0), 50)
    assert [record["step"] for record in records(tmp_path)] == [50]


def test_a_collapse_is_warned_of_once_also_when_the_run_was_interrupted(tmp_path):
    for first_step, deviations, warnings in (
            (0, [1e-3, 0.5, 0.006], 0), (3, [0.004, 0.001], 1), (5, [0.001], 0)):
        out = io.StringIO()
        report = reporter(tmp_path, out, first_step, num_steps=5000, log_every_steps=1)
        for step, deviation in enumerate(deviations, start=first_step + 1):
            train(report, totals(1.0) | {
                "discriminator_logit": (-2.0, 1.0),
                "discriminator_logit_squared": (4.0 + deviation**2, 1.0)}, step)
        printed = out.getvalue()
        assert printed.count("collapsed") == printed.count("collapsed: at step 4 ") == warnings


def test_tensorboard_has_scalars_and_samples_by_step(tmp_path):
    report = reporter(tmp_path)
    for step in (1, 4):
        train(report, totals(1.5), step)
    report.on_eval({"loss": 3.0})
    report.on_samples([])
    events = [event for path in (tmp_path / "tensorboard").iterdir()
              for event in tf.compat.v1.train.summary_iterator(str(path))]
    read = {value.tag: (event.step, tf.make_ndarray(value.tensor))
            for event in events for value in event.summary.value}
    assert read["train/loss"] == (4, 1.5) and read["eval/loss"] == (4, 3.0)
    assert read["samples"][0] == 4
