"""A run's settings.json, damaged, and a directory that can't hold one."""

import contextlib
import io
import json
import os
import time

import pytest

from electra_tf.checkpoints import run_directory
from electra_tf.config.overrides import override
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
    for name, file, content in (("steps", "checkpoints/ckpt-3500.json", "{}"),
                                ("trials", "results.json", '{"trials": [{}]}'),
                                ("damaged", "results.json", "{")):
        (tmp_path / name / file).parent.mkdir(parents=True)
        (tmp_path / name / file).write_text(content)
        os.utime(tmp_path / name / file, (0, time.mktime((2100, 1, 2, 3, 4, 0, 0, 0, -1))))
        (tmp_path / name / "settings.json").touch()
    with contextlib.nullcontext() if is_deleted else refused("nothing was deleted"):
        run_directory.confirm_restart(
            [tmp_path / name for name in ("steps", "trials", "damaged", "new")], ask=ask)
    assert capsys.readouterr().out.splitlines() == [
        f"restart  deletes {tmp_path / name}: {contents}written 2100-01-02 03:04"
        for name, contents in (("steps", "3,500 steps, "), ("trials", "1 finished trial, "),
                               ("damaged", ""))]
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


@pytest.mark.parametrize("change", [
    {"task_labels": ["yes", "no"]}, {"task_metrics": ["f1"]}, {"task_kind": "tagging"}])
def test_settings_of_another_task_than_the_head_was_trained_for_are_refused(tmp_path, change):
    task = {"task_labels": ["no", "yes"], "task_metrics": ["accuracy"],
            "task_kind": "classification"}
    saved = run_directory.identity(PretrainingConfig(), FACTS | task)
    (tmp_path / "results.json").write_text(json.dumps({"checkpoint": 2, "facts": task}))
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    assert run_directory.checkpoint_of_results(tmp_path) == 2
    (tmp_path / "settings.json").write_text(json.dumps(saved | change))
    (name, value), = change.items()
    with refused(rf"settings.json was changed .*{name}: .*{value[0]}.*restore"):
        run_directory.checkpoint_of_results(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"checkpoint": 2}))  # Of earlier versions.
    assert run_directory.checkpoint_of_results(tmp_path) == 2


@pytest.mark.parametrize(("changes", "words"), [
    ({"objective.name": "gan"}, "objective.name must be one of"),
    ({"objective.lambda": 50.0}, "unknown setting 'objective.lambda'"),
    ({"objective.generator_loss_weight": "1"}, "weight must be of type float. Received: '1'")])
def test_a_damaged_objective_is_one_line(tmp_path, changes, words):
    saved = run_directory.identity(PretrainingConfig(), FACTS) | changes
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    with refused(f"settings.json is damaged: .*{words}"):
        run_directory.read_identity(tmp_path, PretrainingConfig())


def test_a_run_of_another_version_without_a_setting_is_refused_with_a_fix(tmp_path):
    saved = run_directory.identity(PretrainingConfig(), FACTS)
    del saved["training.seed"]
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    with refused(r"settings.json lacks training.seed: .*another version.*new --model_dir"):
        run_directory.read_identity(tmp_path, PretrainingConfig())


@pytest.mark.parametrize(("num_heads", "facts", "accepted"), [
    (8, {}, False), (8, {"generator_heads": 8}, True), (4, {}, True)])
def test_a_wide_generator_of_a_version_with_other_heads_is_refused(
        tmp_path, num_heads, facts, accepted):
    """Earlier, a generator of 256 units had 4 heads beside a discriminator of 8 heads."""
    config = override(PretrainingConfig(), {
        "model.generator_width": 1.0, "model.num_heads": num_heads})
    saved = run_directory.identity(config, FACTS | facts)
    (tmp_path / "settings.json").write_text(json.dumps(saved))
    if accepted:
        assert run_directory.read_identity(tmp_path, PretrainingConfig()) == saved
        assert run_directory.generator_fact(config.model) == facts
    else:
        with refused("settings.json lacks generator_heads: .*another version"):
            run_directory.read_identity(tmp_path, PretrainingConfig())
