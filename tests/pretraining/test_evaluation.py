"""Scores of held-out examples don't depend on how their batches are computed."""

import io

import pytest

from electra_tf.platform import strict_json
from electra_tf.pretraining.evaluation import evaluator_of
from electra_tf.pretraining.results import report
from tests import tiny_run


def evaluate(records, **changes):
    run = tiny_run.run_on(records, **{
        "model__num_layers": 1, "runtime__eval_batch_size": 4, **changes})
    return evaluator_of(run, run.build_model()).evaluate()


def test_parts_and_batches_dont_change_the_scores(records):
    expected = evaluate(records, runtime__cpu_parts=1)
    assert 0.0 < expected["discriminator_auc"] < 1.0
    for changes in {"runtime__cpu_parts": 2}, {"runtime__eval_batch_size": 3}:
        scores = evaluate(records, **changes)
        assert scores == pytest.approx(expected, rel=1e-5, nan_ok=True), changes


def test_scores_that_cant_be_given_are_null_in_the_file(records, tmp_path):
    run = tiny_run.run_on(records, tmp_path)
    report(run, {"loss": 1.5, "bigram_auc": float("nan")}, 7, io.StringIO())
    saved = strict_json.parse((tmp_path / "eval_results.json").read_bytes())
    assert saved == {"step": 7, "loss": 1.5, "bigram_auc": None}
