import dataclasses
import math

import pytest

from experiments import budgets, report, sweep
from experiments.report import Spread
from experiments.table import Row, Table

TINY = budgets.budget_of("tiny")
ROW = Row(sweep="objectives", budget="tiny", variant="ELECTRA", seed=1, task="chunk", metric="f1",
          main=True, score=0.8, steps=2000, tokens=4_096_000, flops=1.7e13,
          pretraining_seconds=100.0, task_seconds=60.0, settings="{}",
          task_settings="")


def rows_of(scores, **fields):
    """A row for every seed, from 1."""
    return [dataclasses.replace(ROW, seed=seed, score=score, **fields)
            for seed, score in enumerate(scores, start=1)]


def test_means_have_standard_errors():
    found = Spread.of([0.80, 0.82, 0.84])
    assert (found.mean, found.count) == (pytest.approx(82.0), 3)
    assert found.error == pytest.approx(2.0 / math.sqrt(3))
    assert str(found) == "82.0 ± 1.2"
    assert str(Spread.of([0.5])) == "50.0"
    assert str(Spread.of([math.nan, 0.5])) == "-"


def test_scores_by_task_and_the_mean_of_runs_that_have_all():
    rows = [*rows_of([0.8, 0.9, 0.7]), *rows_of([0.4, 0.6], task="cola", metric="mcc"),
            *rows_of([0.1], main=False, metric="precision"),
            *rows_of([0.2], variant="BERT")]
    found = report.scores_of(["chunk", "cola"], ["ELECTRA", "BERT"], rows)
    assert found["chunk"]["ELECTRA"].mean == pytest.approx(80.0)
    assert found["chunk"]["BERT"] == pytest.approx((20.0, math.nan, 1), nan_ok=True)
    assert found["cola"].keys() == {"ELECTRA"}
    assert found["mean of tasks"]["ELECTRA"].mean == pytest.approx((60 + 75) / 2)
    assert "BERT" not in found["mean of tasks"]


def test_one_task_has_no_mean():
    assert report.scores_of(["chunk"], ["ELECTRA"], rows_of([0.8])).keys() == {"chunk"}


@pytest.mark.parametrize("name", ["objectives", "compute", "masking_rate"])
def test_a_page_has_a_line_per_variant_and_a_picture(tmp_path, name):
    chosen, table = sweep.load(name), Table(tmp_path / "results.sqlite")
    for number, variant in enumerate(chosen.variants[:-1]):
        for task in chosen.tasks[:2]:
            table.add(rows_of([0.5 + number / 50, 0.52 + number / 50], sweep=name, task=task,
                              variant=variant.name, flops=10.0**(12 + number)))
    report.write(chosen, TINY, table, tmp_path)
    page = (tmp_path / report.PAGE).read_text()
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(lines) == 1 + len(chosen.variants)
    assert "| 51.0 ± 1.0 |" in lines[1]
    assert lines[-1].count("| - ") == lines[0].count("| ") - 1  # Nothing ran of the last one.
    assert (tmp_path / report.PICTURE).read_bytes().startswith(b"\x89PNG")


def test_a_page_without_results_says_so(tmp_path):
    chosen, table = sweep.load("tying"), Table(tmp_path / "results.sqlite")
    report.write(chosen, TINY, table, tmp_path)
    assert "tying none | - " in (tmp_path / report.PAGE).read_text()
    assert not (tmp_path / report.PICTURE).exists()
