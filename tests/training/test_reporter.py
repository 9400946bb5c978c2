import io
import json

import numpy as np
import pytest

from electra_tf.training.reporter import Reporter


def reporter(path, out=None, first_step=0):
    return Reporter(path, first_step=first_step, num_steps=10, intervals=(4, 6),
                    tokens_per_step=100, peak_fraction=lambda rate: None, out=out or io.StringIO())


def totals(loss, weight=1.0):
    return {"loss": (loss, 1.0), "generator_loss": (loss * weight, weight),
            "learning_rate": (0.5, 1.0)}


def records(path):
    return [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]


def test_an_interval_ends_at_every_multiple_and_at_the_end(tmp_path):
    report = reporter(tmp_path)
    for step in range(1, 11):
        report.on_train(totals(1.0), step)
    assert [record["step"] for record in records(tmp_path)] == [4, 6, 8, 10]


def test_means_are_weighted_over_the_interval(tmp_path):
    report = reporter(tmp_path)
    report.on_train(totals(2.0, weight=30.0), 1)
    report.on_train(totals(6.0, weight=10.0), 4)
    (record,) = records(tmp_path)
    assert record["loss"] == pytest.approx((2.0 + 6.0) / 2)
    assert record["generator_loss"] == pytest.approx((2 * 30 + 6 * 10) / 40)


def test_the_memory_of_the_process_is_among_the_metrics(tmp_path):
    report = reporter(tmp_path)
    block = np.ones(30_000_000)
    report.on_train(totals(1.0), 4)
    assert block.nbytes < records(tmp_path)[0]["peak_memory_bytes"] < 1e12


def test_a_statistic_that_counted_nothing_is_zero(tmp_path):
    report = reporter(tmp_path)
    report.on_train(totals(1.0) | {"discriminator_precision": (0.0, 0.0)}, 4)
    assert records(tmp_path)[0]["discriminator_precision"] == 0.0


def test_the_first_step_is_timed_apart_and_progress_is_printed(tmp_path):
    out = io.StringIO()
    report = reporter(tmp_path, out)
    report.on_train(totals(1.0), 1)
    report.on_train(totals(1.0), 4)
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("first step after ")
    assert lines[1].startswith("step  4/10  loss  1.000  generator  1.000")


def test_a_resumed_run_forgets_what_came_after_its_checkpoint(tmp_path):
    report = reporter(tmp_path)
    for step in range(1, 9):
        report.on_train(totals(1.0), step)
    report.on_eval({"loss": 3.0})
    again = reporter(tmp_path, first_step=6)
    assert [record["step"] for record in records(tmp_path)] == [4, 6]
    assert not again.has_evaluation(8)
    again.on_train(totals(1.0), 8)
    again.on_eval({"loss": 3.0})
    assert again.has_evaluation(8)
