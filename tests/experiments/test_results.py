import dataclasses

import pytest

from electra_tf.platform.errors import UserError
from experiments import results
from experiments.table import Row, Table
from tests import command_flags

ROW = Row(sweep="objectives", budget="tiny", variant="ELECTRA", seed=1, task="chunk", metric="f1",
          main=True, score=0.8, steps=2000, tokens=4_096_000, flops=1.7e13,
          pretraining_seconds=100.0, task_seconds=60.0, settings="{}", task_settings="")


@pytest.fixture(autouse=True)
def program_flags():
    with command_flags.defined(results.define):
        yield


def write(tmp_path):
    command_flags.call(results.main, f"--results={tmp_path / 'results.sqlite'}",
                       f"--output={tmp_path / 'docs' / 'results.md'}")
    return (tmp_path / "docs" / "results.md").read_text()


def test_a_section_for_every_sweep_and_budget(tmp_path):
    (tmp_path / "docs" / "images").mkdir(parents=True)
    Table(tmp_path / "results.sqlite").add([
        ROW, dataclasses.replace(ROW, sweep="tying", variant="tying none", score=0.6),
        dataclasses.replace(ROW, budget="cpu-day", score=0.9)])
    page = write(tmp_path)
    assert page.count("\n## ") == 3 and "Records" not in page
    assert "| ELECTRA | 2,000 | 4.1 | 80.0 | 1 |" in page
    assert "python -m experiments.run objectives --budget=cpu-day" in page
    assert "--tasks=chunk" in page
    assert len(list((tmp_path / "docs" / "images").glob("results_*.png"))) == 3


def test_nothing_to_write_is_one_line(tmp_path):
    with pytest.raises(UserError, match="there is no results table"):
        write(tmp_path)
    Table(tmp_path / "results.sqlite")
    with pytest.raises(UserError, match="is empty"):
        write(tmp_path)
