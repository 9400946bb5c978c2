"""Scores of held-out examples don't depend on how their batches are computed."""

import pytest

from tests import tiny_records, tiny_run


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("evaluation") / "records"
    tiny_records.write(directory)
    return directory


def evaluate(records, **changes):
    run = tiny_run.run_on(records, **{"runtime__eval_batch_size": 4, **changes})
    return run.build_evaluator(run.build_model()).evaluate()


def test_parts_and_batches_dont_change_the_scores(records):
    expected = evaluate(records, runtime__cpu_parts=1)
    assert 0.0 < expected["discriminator_auc"] < 1.0
    for changes in {"runtime__cpu_parts": 2}, {"runtime__eval_batch_size": 3}:
        scores = evaluate(records, **changes)
        assert scores == pytest.approx(expected, rel=1e-5, nan_ok=True), changes
