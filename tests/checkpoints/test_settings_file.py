"""A run's settings.json, damaged, and a directory that can't hold one."""

import contextlib
import io
import json

import pytest

from electra_tf.checkpoints import run_directory
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from tests.support.refusals import refused

FACTS = {"lower_case": True, "strip_accents": True, "dataset": "x", "initial": None}


def test_a_directory_that_tensorflow_takes_for_a_pattern_is_refused(tmp_path):
    with refused(r"\[run\] contains one of .* choose another name"):
        run_directory.open_run_dir(storage.path(tmp_path / "[run]"), {})
    with refused(r"run.udcff' is not a name in UTF-8"):
        run_directory.open_run_dir(storage.path(tmp_path / "run\udcff"), {})
    assert list(tmp_path.iterdir()) == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stdin", "ask", "is_deleted"), [
    (Terminal("y\n"), True, True), (Terminal("\n"), True, False), (Terminal(), True, False),
    (Terminal("no\n"), False, True), (io.StringIO("no\n"), True, True), (None, True, True)])
def test_a_restart_names_what_it_deletes_and_asks_on_a_terminal(
        stdin, ask, is_deleted, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", stdin)
    monkeypatch.setattr("sys.stderr", questions := Terminal())
    (tmp_path / "run").mkdir()
    for name in ("settings.json", "results.json"):
        (tmp_path / "run" / name).touch()
    with contextlib.nullcontext() if is_deleted else refused("nothing was deleted"):
        run_directory.confirm_restart([tmp_path / "run", tmp_path / "new"], ask=ask)
    assert capsys.readouterr().out == f"restart  deletes {tmp_path / 'run'}\n"
    assert ("[y/N]" in questions.getvalue()) == (ask and isinstance(stdin, Terminal))


def test_a_run_that_continues_removes_what_killed_processes_left(tmp_path):
    for name in ("", "checkpoints", "predictions"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / ".unfinished-1-ab-results.json").touch()
    with run_directory.only_process(tmp_path):
        assert not list(tmp_path.rglob(".unfinished-*"))
        (tmp_path / ".unfinished-1-cd-settings.json").touch()
        with refused("another process is training"), run_directory.only_process(tmp_path):
            pass
        assert len(list(tmp_path.rglob(".unfinished-*"))) == 1  # It belongs to the lock's holder.


@pytest.mark.parametrize(("changes", "words"), [
    ({"objective.name": "gan"}, "objective.name must be one of"),
    ({"objective.lambda": 50.0}, "unknown setting 'objective.lambda'"),
    ({"objective.generator_loss_weight": "1"}, "weight must be of type float. Received: '1'")])
def test_a_damaged_objective_is_one_line(tmp_path, changes, words):
    saved = run_directory.identity(PretrainingConfig(), FACTS) | changes
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    with refused(f"settings.json is damaged.*: .*{words}"):
        run_directory.read_identity(tmp_path)


def test_a_run_of_another_version_without_a_setting_is_refused_with_a_fix(tmp_path):
    saved = run_directory.identity(PretrainingConfig(), FACTS)
    del saved["training.seed"]
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    with refused(r"settings.json lacks training.seed: .*another version.*new --model_dir"):
        run_directory.read_identity(tmp_path)
