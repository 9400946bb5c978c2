"""The results table, and the pages and pictures that are made from it."""

import dataclasses
import math
import re
from unittest import mock

import pytest

from electra_tf.platform.errors import UserError
from experiments import results
from experiments.results import ResultsTable, ScoreRow, Spread
from experiments.sweep import load
from tests.support import command_flags

ROW = ScoreRow(sweep="objectives", budget="tiny", variant="ELECTRA", seed=1, task="chunk",
               metric="f1", main=True, score=0.8, steps=2000, tokens=4_096_000, flops=1.7e13,
               settings="{}", task_settings="")


def rows_of(scores, **fields):
    """A row for every seed, from 1."""
    return [dataclasses.replace(ROW, seed=seed, score=score, **fields)
            for seed, score in enumerate(scores, start=1)]


def test_rows_come_back_as_they_were_and_replace_those_of_the_same_run(tmp_path):
    table = ResultsTable(tmp_path / "results.sqlite")
    other = dataclasses.replace(ROW, variant="B", main=False, score=None, sweep="t")
    table.add([dataclasses.replace(ROW, score=0.1)])
    table.add([ROW, other])
    assert ResultsTable(tmp_path / "results.sqlite").rows() == [ROW, other]
    assert len(table.rows("objectives", "tiny")) == 1 and table.rows("t", "paper") == []
    (tmp_path / "text").write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(UserError, match="text can't be used: file is not a database"):
        ResultsTable(tmp_path / "text")


def test_means_have_standard_errors():
    spread = Spread.of([0.80, 0.82, 0.84])
    assert spread == pytest.approx((82.0, 2.0 / math.sqrt(3)))
    assert list(map(str, (spread, Spread.of([0.5]), Spread.of([math.nan, 0.5])))) == [
        "82.0 ± 1.2", "50.0", "-"]


def test_scores_by_task_and_the_mean_of_runs_that_have_all():
    rows = [*rows_of([0.8, 0.9, 0.7]), *rows_of([0.4, 0.6], task="cola", metric="mcc"),
            *rows_of([0.1], main=False, metric="precision"), *rows_of([0.2], variant="BERT")]
    scores = results.scores_of(["chunk", "cola"], rows)
    assert scores["chunk"]["ELECTRA"].mean == pytest.approx(80.0)
    assert scores["chunk"]["BERT"] == pytest.approx((20.0, math.nan), nan_ok=True)
    assert scores["cola"].keys() == {"ELECTRA"}
    assert scores["mean of tasks"]["ELECTRA"].mean == pytest.approx((60 + 75) / 2)
    assert "BERT" not in scores["mean of tasks"]
    assert results.scores_of(["chunk", "mrpc"], rows).keys() == {"chunk"}


def write_page(*arguments):
    with command_flags.defined(results.define):
        command_flags.call(results.main, *arguments)


def test_the_recorded_page_is_what_the_command_writes(tmp_path):
    write_page(f"--output={tmp_path / 'docs' / 'results.md'}")
    assert (tmp_path / "docs" / "results.md").read_text() == results.PAGE.read_text()
    for picture in (results.PAGE.parent / "images").glob("results_*.png"):
        assert (tmp_path / "docs" / "images" / picture.name).exists()


def test_scores_in_the_recorded_answers_are_those_of_the_table():
    table, answers = ResultsTable(results.RECORDED), results.read_sections(
        results.RECORDED.with_suffix(".yml"), "recorded.yml")["answers"]
    for sweep, answer in answers.items():
        spreads = results.scores_of(["chunk"], table.rows(sweep))["chunk"]
        stated = re.findall(r"\d\d\.\d ± \d\.\d", answer)
        assert len(stated) >= 2 and set(stated) <= {str(spread) for spread in spreads.values()}


class Axes(mock.MagicMock):
    """Axes that keep what is drawn, with limits around it."""

    def get_xlim(self):
        return (82.0, 84.0)


def test_a_far_lower_score_is_drawn_at_the_edge_with_its_value():
    sweep, axes = load("objectives"), Axes()
    results._draw_rows(axes, sweep, {
        "ELECTRA": Spread(84.0, 0.5), "BERT": Spread(82.0, 0.1), "ELECTRA 15 %": Spread(67.7, 0.1)})
    (scores, _), _ = axes.errorbar.call_args
    assert scores == [82.0, 84.0]
    assert axes.annotate.call_args.args[0].startswith("◀ 67.7 ± 0.1")
    assert axes.set_xlim.call_args.args == (80.5, 85.5)  # Five points, not two.


def test_shares_of_the_budget_are_curves_over_flops():
    sweep, axes = load("compute"), Axes(get_ylim=lambda: (80.0, 87.0))
    names = [f"{name}, share {share}" for name in ("ELECTRA", "BERT") for share in ("0.25", "1")]
    results._draw_curves(axes, sweep, dict.fromkeys(names, Spread(84.0, 0.5)),
                         dict(zip(names, (1e12, 4e12, 2e12, 5e12), strict=True)))
    assert [(call.args[0], call.kwargs["label"]) for call in axes.errorbar.call_args_list] == [
        ([1e12, 4e12], "ELECTRA"), ([2e12, 5e12], "BERT")]
    axes.set_xscale.assert_called_once_with("log")


def test_the_page_of_results_has_a_section_for_every_sweep_and_budget(tmp_path):
    def write():
        write_page(f"--results={tmp_path / 'results.sqlite'}",
                   f"--output={tmp_path / 'docs' / 'results.md'}")

    with pytest.raises(UserError, match="there is no results table"):
        write()
    table = ResultsTable(tmp_path / "results.sqlite")
    with pytest.raises(UserError, match="is empty"):
        write()
    table.add([ROW, dataclasses.replace(ROW, sweep="tying", variant="tying none", score=0.6),
               dataclasses.replace(ROW, budget="cpu-day", score=0.9)])
    write()
    page = (tmp_path / "docs" / "results.md").read_text()
    assert page.count("\n## ") == 3 and "Records" not in page
    assert "| ELECTRA | 2,000 | 4.1 | 80.0 | 1 |" in page
    assert "python -m experiments.run objectives --budget=cpu-day" in page
    assert len(list((tmp_path / "docs" / "images").glob("results_*.png"))) == 3
