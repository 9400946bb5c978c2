"""Rows of results in a file, the tables that are made from them, and the recorded ones."""

import dataclasses
import math
import re

import pytest

from electra_tf.core.errors import UserError
from experiments import results
from experiments.results import ScoreRow
from experiments.sweep import BUDGETS, load
from tests.support import command_flags, sources

PAGE = sources.ROOT / "docs" / "explanation" / "results.md"
ROW = ScoreRow(sweep="objectives", budget="tiny", variant="ELECTRA", seed=1, task="chunk",
               main="f1", scores={"precision": 0.9, "f1": 0.8}, steps=2000, tokens=4_096_000,
               flops=1.7e13, settings={"masking.rate": 0.25}, task_settings={})


def rows_of(scores, **fields):
    """A row for every seed, from 1."""
    return [dataclasses.replace(ROW, seed=seed, scores={ROW.main: score}, **fields)
            for seed, score in enumerate(scores, start=1)]


def test_rows_are_written_in_order_and_read_as_they_were(tmp_path):
    path = tmp_path / "results.jsonl"
    second = dataclasses.replace(ROW, seed=2, scores={"f1": None}, task_settings=None)
    results.write(path, [second, ROW])
    assert results.read(path) == [ROW, second]
    path.write_bytes(path.read_bytes().replace(b'"seed":2', b'"seed":2.5'))
    with pytest.raises(UserError, match=r"results\.jsonl has a damaged line: 'seed' must be"):
        results.read(path)


def test_means_have_standard_errors():
    # Deviation 2 over three: 2 / sqrt(3) = 1.155.
    assert list(map(results.spread, ([0.80, 0.82, 0.84], [0.5], [math.nan, 0.5], []))) == [
        "82.0 ± 1.2", "50.0", "-", "-"]


def test_a_table_has_scores_by_task_and_the_mean_of_seeds_that_have_all():
    rows = [*rows_of([0.8, 0.9, 0.7]), *rows_of([0.4, 0.6], task="cola", main="f1"),
            *rows_of([0.2], variant="BERT"), *rows_of([3.5], task="pretraining")]
    lines = results.section(load("objectives"), BUDGETS["tiny"], rows)
    assert "|  | steps | tokens, M | chunking F1 | CoLA F1 | mean of tasks | seeds |" in lines
    # Means of seeds 1 and 2 are 60 and 75, whose deviation is 10.6.
    assert ("| ELECTRA | 2,000 | 4.1 | 80.0 ± 5.8 | 50.0 ± 10.0 | 67.5 ± 7.5 | 3 |") in lines
    assert "| BERT | 2,000 | 4.1 | 20.0 | - | - | 1 |" in lines
    assert "| Replace MLM | - | - | - | - | - | - |" in lines
    # Means of CPU time, if pre-training measured it.
    timed = rows_of([3.5, 3.6], task="pretraining", cpu_seconds=90.0)
    lines = results.section(load("objectives"), BUDGETS["tiny"], rows[:3] + timed)
    assert "|  | steps | tokens, M | CPU minutes | chunking F1 | seeds |" in lines
    assert "| ELECTRA | 2,000 | 4.1 | 1.5 | 80.0 ± 5.8 | 3 |" in lines


def test_the_page_of_results_has_the_recorded_tables_and_their_scores(capsys):
    with command_flags.defined(results.define):
        command_flags.call(results.main)
    printed, page = capsys.readouterr().out, PAGE.read_text()
    for table in re.findall(r"(?m)(?:^\|.*\n)+", printed):
        assert table in page
    answers = re.findall(r"(?m)^\*\*.*", page)
    assert len(answers) == len(re.findall("(?m)^## ", printed)) == 5
    # Scores in sentences are those of the tables.
    for section in page.split("\n## ")[1:]:
        answer, table = (set(re.findall(r"\d\d\.\d\s±\s\d\.\d", text.replace("\n", " ")))
                         for text in section.split("\n|", 1))
        assert answer and answer <= table
