import dataclasses
import sqlite3

import pytest

from electra_tf.platform.errors import UserError
from experiments.table import Row, Table

ROW = Row(sweep="s", budget="tiny", variant="A", seed=1, task="chunk", metric="f1", main=True,
          score=0.5, steps=10, tokens=100, flops=1e9, pretraining_seconds=1.5, task_seconds=2.5,
          settings="{}",
          task_settings="")


def plain(rows):
    return [dataclasses.replace(row, finished="") for row in rows]


def test_rows_come_back_as_they_were(tmp_path):
    table = Table(tmp_path / "results.sqlite")
    other = dataclasses.replace(ROW, variant="B", main=False, score=None, sweep="t")
    table.add([ROW, other])
    again = Table(tmp_path / "results.sqlite")
    assert plain(again.rows()) == [ROW, other]
    assert plain(again.rows("s", "tiny")) == [ROW]
    assert again.rows("s", "paper") == []
    assert again.rows()[0].finished.startswith("20")


def test_a_score_is_there_once(tmp_path):
    table = Table(tmp_path / "results.sqlite")
    better = dataclasses.replace(ROW, score=0.6)
    table.add([ROW])
    table.add([better])
    assert plain(table.rows()) == [better]


def test_a_table_of_another_version_is_one_line(tmp_path):
    path = tmp_path / "results.sqlite"
    Table(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(UserError, match="is of version 7 of the results table, and this program "
                       "writes 1: name another --results"):
        Table(path)


def test_what_is_no_table_is_one_line(tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(UserError, match="can't be used: file is not a database"):
        Table(path)
    with pytest.raises(UserError, match="can't be used"):
        Table(tmp_path)
