"""The row of GLUE that papers print, against numbers by hand."""

import json
import subprocess
import sys

import pytest

from electra_tf.finetuning import glue_average
from electra_tf.finetuning.results import Epoch, Results, Trial
from electra_tf.platform.errors import UserError
from electra_tf.tasks.glue import TASKS

SCORES = {
    "cola": [{"mcc": 0.5}, {"mcc": 0.6}, {"mcc": 0.9}], "sst2": [{"accuracy": 0.9}],
    "mrpc": [{"accuracy": 0.8, "f1": 0.95}], "stsb": [{"pearson": 0.99, "spearman": 0.8}],
    "qqp": [{"accuracy": 0.7, "f1": 0.1}], "mnli": [{"accuracy": 0.75}],
    "qnli": [{"accuracy": 0.85}], "rte": [{"accuracy": 0.4}, {"accuracy": 0.6}],
    "wnli": [{"accuracy": 0.3}]}
"""Task -> scores of its trials, as dev's files would give."""
# Medians that count: 60, 90, 80, 80, 70, 75, 85, 50; their mean is 590 / 8; with WNLI 620 / 9.


def write(model_dir, name, trials, *, task=None):
    (model_dir / name).mkdir(parents=True)
    Results(task=task or name, metrics=tuple(trials[0]), initial="none", trials=tuple(
        Trial(seed=seed, losses=(), kept_epoch=1, seconds=1.0, examples_per_second=1.0, epochs=(
            Epoch(epoch=1, step=1, loss=0.5, scores={
                split: {metric: score - 0.01 * ("mismatched" in split)
                        for metric, score in scores.items()}
                for split in TASKS[task or name].dev}),))
        for seed, scores in enumerate(trials))).save(model_dir / name)


def cells(printed):
    """Rows of the printed table without its line."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in printed.splitlines() if line.startswith("|")]
    assert set("".join(rows.pop(1))) == {"-"}
    return rows


def test_all_nine_by_hand(tmp_path, capsys):
    for name, trials in SCORES.items():
        write(tmp_path, name, trials)
    glue_average.report(tmp_path)
    printed = capsys.readouterr().out
    heads, metrics, scores, trials = cells(printed)
    assert heads == ["", "CoLA", "SST-2", "MRPC", "STS-B", "QQP", "MNLI", "QNLI", "RTE", "WNLI",
                     "avg", "avg with WNLI"]
    assert metrics[1:10] == ["MCC", "acc", "acc / F1", "Spearman / Pearson", "acc / F1",
                             "acc, m / mm", "acc", "acc", "acc"]
    assert scores == ["dev", "60.00", "90.00", "80.00 / 95.00", "80.00 / 99.00", "70.00 / 10.00",
                      "75.00 / 74.00", "85.00", "50.00", "30.00", "73.75", "68.89"]
    assert trials[1:10] == ["3", "1", "1", "1", "1", "1", "1", "2", "1"]
    assert "over 8 of 8 tasks" in printed and "missing" not in printed
    saved = json.loads((tmp_path / "glue_average.json").read_text())
    assert saved["average_without_wnli"] == pytest.approx(0.7375)
    assert saved["average_with_wnli"] == pytest.approx(6.2 / 9)
    assert saved["tasks"]["stsb"] == {"metric": "spearman", "median": 0.8, "trials": 1}
    assert saved["missing"] == []


def test_tasks_that_are_missing_are_said_and_left_out(tmp_path, capsys):
    write(tmp_path, "cola", SCORES["cola"])
    write(tmp_path, "rte", SCORES["rte"])
    (tmp_path / "qnli").mkdir()
    glue_average.report(tmp_path)
    printed = capsys.readouterr().out
    assert cells(printed)[2] == ["dev", "60.00", *"------", "50.00", "-", "55.00", "-"]
    assert "over 2 of 8 tasks" in printed
    assert "missing  sst2, mrpc, stsb, qqp, mnli, qnli, wnli: no results.json" in printed
    saved = json.loads((tmp_path / "glue_average.json").read_text())
    assert saved["average_with_wnli"] is None and len(saved["missing"]) == 7


def test_wnli_alone_and_scores_that_are_no_numbers_have_no_average(tmp_path, capsys):
    write(tmp_path / "one", "wnli", SCORES["wnli"])
    glue_average.report(tmp_path / "one")
    assert cells(capsys.readouterr().out)[2][-3:] == ["30.00", "-", "30.00"]
    write(tmp_path / "two", "cola", [{"mcc": float("nan")}])
    write(tmp_path / "two", "rte", SCORES["rte"])
    glue_average.report(tmp_path / "two")
    assert cells(capsys.readouterr().out)[2] == ["dev", "-", *"------", "50.00", "-", "-", "-"]
    saved = json.loads((tmp_path / "two" / "glue_average.json").read_text())
    assert saved["average_without_wnli"] is None


def test_what_is_no_run_of_glue_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    for name, message in (("nowhere", "nowhere is no directory"), ("file", "file is no directory"),
                          ("", "has no finished task of GLUE: there is neither cola/res")):
        with pytest.raises(UserError, match=f"--model_dir=.*{message}"):
            glue_average.report(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_results_of_another_task_or_metric_and_damaged_ones_are_refused(tmp_path):
    for name, trials, task in (("rte", SCORES["rte"], "cola"), ("mrpc", [{"accuracy": 0.8}], None),
                               ("mnli", [{"accuracy": 0.8}], "sst2")):
        write(tmp_path / name, name, trials, task=task)
        with pytest.raises(UserError, match=rf"{name}/results.json is not of --task={name}"):
            glue_average.report(tmp_path / name)
        assert not (tmp_path / name / "glue_average.json").exists()
    write(tmp_path, "cola", SCORES["cola"])
    for content in (b"", b"{", b"\xff", b"[]", b'{"task": "cola"}'):
        (tmp_path / "cola" / "results.json").write_bytes(content)
        with pytest.raises(UserError, match=r"cola/results.json is damaged: ") as error:
            glue_average.report(tmp_path)
        assert "\n" not in str(error.value)


def test_nobody_waits_for_tensorflow():
    program = ("import sys, electra_tf.finetuning.command, electra_tf.finetuning.glue_average\n"
               "sys.exit(bool({'tensorflow', 'tf_keras', 'matplotlib'} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
