"""Means, medians and tables of trials, against numbers by hand."""

import json
import math

import pytest

from electra_tf.finetuning.results import Epoch, Results, Trial, glue_average
from electra_tf.platform.errors import UserError


def trial(seed, *scores, kept=None, metric="accuracy"):
    """A trial with a score per epoch."""
    return Trial(
        seed=seed, losses=((10, 0.5),), kept_epoch=kept or len(scores), seconds=1.0,
        examples_per_second=100.0,
        epochs=tuple(Epoch(epoch=number, step=10 * number, loss=0.5,
                           scores={"dev": {metric: score}})
                     for number, score in enumerate(scores, start=1)))


def results(*trials, task="rte", metric="accuracy"):
    return Results(task=task, metrics=(metric,), initial="none", trials=trials)


def test_a_summary_by_hand():
    found = results(trial(1, 0.9, 0.5), trial(2, 0.6), trial(3, 0.8, 0.1, kept=1))
    summary = found.summary()["dev"]["accuracy"]
    assert summary["mean"] == pytest.approx(1.9 / 3)
    assert summary["median"] == 0.6
    assert summary["std"] == pytest.approx(0.1527525)
    assert summary["best"] == 0.8
    assert found.best.seed == 3


def test_errors_are_better_if_lower_and_what_is_no_number_is_worst():
    metric = "mean_squared_error"
    found = results(trial(1, 2.0, metric=metric), trial(2, 0.5, metric=metric), metric=metric)
    assert found.best.seed == 2
    assert found.summary()["dev"][metric]["best"] == 0.5
    assert results(trial(1, math.nan), trial(2, -0.3)).best.seed == 2


def test_a_file_holds_all_of_it_as_strict_json(tmp_path):
    found = results(trial(1, math.nan), trial(2, 0.25))
    found.save(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text(),
                         parse_constant=lambda name: pytest.fail(name))
    assert content["best_seed"] == 2
    again = Results.load(tmp_path)
    assert again.trials[1] == found.trials[1] and again.best.seed == 2
    assert again.trials[0].scores["dev"]["accuracy"] is None
    (tmp_path / "results.json").write_text('{"task": "rte"}')
    with pytest.raises(UserError, match=r"results.json is damaged"):
        Results.load(tmp_path)
    assert Results.load(tmp_path / "nowhere") is None


def test_a_table_shows_per_cent_of_each_trial():
    lines = results(trial(1, 0.5), trial(2, 0.75)).table().splitlines()
    assert lines[0].split() == ["rte,", "dev:", "2", "trials", "mean", "median", "std", "best",
                                "each", "trial"]
    assert lines[1].split() == ["accuracy", "62.50", "62.50", "17.68", "75.00", "50.00", "75.00"]
    assert results(trial(1, 0.5)).table().splitlines()[1].split() == ["accuracy", "50.00"]


def test_the_average_takes_one_metric_a_task():
    cola = results(trial(1, 0.4), task="cola")
    two = Results(task="stsb", metrics=("pearson", "spearman"), initial="none", trials=(
        Trial(seed=1, losses=(), kept_epoch=1, seconds=1.0, examples_per_second=1.0,
              epochs=(Epoch(epoch=1, step=1, loss=0.1,
                            scores={"dev": {"pearson": 0.9, "spearman": 0.6}}),)),))
    assert glue_average([cola, two]) == pytest.approx(0.5)
    assert glue_average([]) is None
