"""Means, medians and tables of trials, against numbers by hand."""

import dataclasses
import json
import math

import pytest

from electra_tf.finetuning.results import Epoch, Results, Trial, glue_table
from electra_tf.tasks.glue import TASKS
from tests.support.refusals import refused


def results(*trials, task="rte", kept=None):
    """Results of trials, each a list with scores of every epoch."""
    return Results(task=task, metrics=tuple(trials[0][0]), initial="none", trials=tuple(
        Trial(seed=seed, losses=((10, 0.5),), kept_epoch=kept or len(scores), seconds=1.0,
              examples_per_second=100.0, epochs=tuple(
                  Epoch(epoch=number, step=10 * number, loss=0.5, scores={
                      split: {metric: value - 0.01 * ("mismatched" in split)
                              for metric, value in metrics.items()} for split in TASKS[task].dev})
                  for number, metrics in enumerate(scores, start=1)))
        for seed, scores in enumerate(trials, start=1)))


def accuracies(*values):
    return [{"accuracy": value} for value in values]


def test_a_summary_by_hand():
    trials = results(accuracies(0.1, 0.5), accuracies(0.6), accuracies(0.1, 0.8))
    assert trials.summary()["dev"]["accuracy"] == pytest.approx(
        {"mean": 1.9 / 3, "median": 0.6, "std": 0.1527525, "best": 0.8})
    assert trials.best.seed == 3
    assert results(accuracies(0.9, 0.5), kept=1).summary()["dev"]["accuracy"]["best"] == 0.9
    errors = results([{"mean_squared_error": 2.0}], [{"mean_squared_error": 0.5}])
    assert errors.best.seed == 2
    assert errors.summary()["dev"]["mean_squared_error"]["best"] == 0.5
    assert results(accuracies(math.nan), accuracies(-0.3)).best.seed == 2


def test_some_settings_of_a_grid_may_search_a_threshold(tmp_path):
    given, searched = (dataclasses.replace(trial, changes={"task.label_threshold": threshold})
                       for trial, threshold in zip(results(
                           accuracies(0.5), [{"accuracy": 0.6, "threshold": 0.3}]).trials, (0.5, 0),
                           strict=True))
    for trials, threshold in ((given, searched), 0.3), ((searched, dataclasses.replace(
            given, epochs=results(accuracies(0.7)).trials[0].epochs)), None):
        both = dataclasses.replace(results(accuracies(0.5)), trials=trials)
        both.save(tmp_path)
        assert Results.load(tmp_path) == both and both.threshold == threshold
        assert "label_threshold=0.5" in both.table()


def test_a_file_holds_all_results_as_strict_json(tmp_path):
    saved = results(accuracies(math.nan), accuracies(0.25))
    saved.save(tmp_path)
    content = json.loads((tmp_path / "results.json").read_text(),
                         parse_constant=lambda name: pytest.fail(name))
    assert content["best_seed"] == 2
    again = Results.load(tmp_path)
    assert again.trials[1] == saved.trials[1] and again.best.seed == 2
    assert again.trials[0].scores["dev"]["accuracy"] is None
    for damaged in (b"", b"[]", b'{"task": "rte"}', json.dumps(content | {"trials": []}).encode(),
                    json.dumps(content | {"metrics": ["mcc"]}).encode()):
        (tmp_path / "results.json").write_bytes(damaged)
        with refused("results.json is damaged"):
            Results.load(tmp_path)
    assert Results.load(tmp_path / "nowhere") is None


GLUE = {
    "cola": [{"mcc": 0.5}, {"mcc": 0.6}, {"mcc": 0.9}], "sst2": [{"accuracy": 0.9}],
    "mrpc": [{"accuracy": 0.8, "f1": 0.95}], "stsb": [{"pearson": 0.99, "spearman": 0.8}],
    "qqp": [{"accuracy": 0.7, "f1": 0.1}], "mnli": [{"accuracy": 0.75}],
    "qnli": [{"accuracy": 0.85}], "rte": [{"accuracy": 0.4}, {"accuracy": 0.6}],
    "wnli": [{"accuracy": 0.3}]}
"""Task -> scores of its trials. Medians that count: 60, 90, 80, 80, 70, 75, 85, 50; their mean is
590 / 8; with WNLI 620 / 9."""


def cells(*names):
    """Rows of the printed table, from the heading on."""
    by_task = {name: results(*([scores] for scores in GLUE[name]), task=name) for name in names}
    return [line.replace(" / ", "/").split() for line in glue_table(by_task).splitlines()[1:]]


def test_glues_nine_tasks_by_hand():
    heading, *rows, note = cells(*GLUE)
    assert heading == ["metric", "dev", "trials"]
    assert rows == [
        ["cola", "mcc", "60.00", "3"], ["sst2", "accuracy", "90.00", "1"],
        ["mrpc", "accuracy/f1", "80.00/95.00", "1"],
        ["stsb", "spearman/pearson", "80.00/99.00", "1"],
        ["qqp", "accuracy/f1", "70.00/10.00", "1"], ["mnli", "accuracy", "75.00/74.00", "1"],
        ["qnli", "accuracy", "85.00", "1"], ["rte", "accuracy", "50.00", "2"],
        ["wnli", "accuracy", "30.00", "1"], ["average", "73.75"],
        ["average", "with", "wnli", "68.89"]]
    assert "over 8 of 8 tasks" in " ".join(note)


def test_an_average_is_of_the_tasks_that_there_are():
    assert cells("cola", "rte")[-3:-1] == [["average", "55.00"], ["average", "with", "wnli", "-"]]
    assert cells("wnli")[-3:-1] == [["average", "-"], ["average", "with", "wnli", "30.00"]]
    nan = {"cola": results([{"mcc": math.nan}], task="cola"), "rte": results(accuracies(0.5))}
    assert glue_table(nan).splitlines()[-3].split() == ["average", "-"]
