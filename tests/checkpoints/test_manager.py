"""Checkpoints: which are kept, and what damage to them does."""

import pytest
import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files
from electra_tf.checkpoints.manager import CheckpointManager
from tests.support.refusals import refused

DATA = "data-00000-of-00001"


def manager_of(directory, *, keep=3, size=1, is_chief=True):
    """A variable and the manager that saves and restores it."""
    variable = tf.Variable(tf.zeros([size]))
    return variable, CheckpointManager(tf.train.Checkpoint(value=variable), directory,
                                       keep=keep, is_chief=is_chief)


def write(directory, steps=(52, 56, 60), **options):
    """Checkpoints of these steps, each of a variable that holds its step."""
    variable, manager = manager_of(directory, **options)
    for step in steps:
        variable.assign([step])
        manager.save(step)
    return manager


def restored(directory):
    """Returns what a new process restores; None before the first checkpoint."""
    variable, manager = manager_of(directory)
    return manager.restore_or_initialize() and int(variable[0])


@pytest.fixture
def trained(tmp_path):
    write(tmp_path)
    return tmp_path


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_all_checkpoints_are_kept_if_keep_is_0(tmp_path):
    for steps in (range(1, 5), range(5, 7)):
        write(tmp_path, steps, keep=0)
    assert checkpoint_files.steps(tmp_path) == [6, 5, 4, 3, 2, 1]


def test_another_worker_restores_the_chiefs_and_leaves_no_files(trained):
    variable, manager = manager_of(trained, keep=0, is_chief=False)
    assert manager.restore_or_initialize().endswith("ckpt-60") and int(variable[0]) == 60
    for step in (64, 68):
        manager.save(step)
    assert checkpoint_files.steps(manager.directory) == [68]
    assert checkpoint_files.steps(trained) == [60, 56, 52]
    manager.close()
    assert not manager.directory.exists()


def test_another_shape_and_a_missing_value_are_refused(trained):
    _, other = manager_of(trained, size=2)
    more = tf.train.Checkpoint(value=tf.Variable([0.0]), extra=tf.Variable(1.0))
    for manager in (other, CheckpointManager(more, trained, keep=3)):
        with refused("ckpt-60 doesn't match this run"):
            manager.restore_or_initialize()


def test_unfinished_files_are_removed_after_a_newer_checkpoint(tmp_path):
    write(tmp_path, [4])
    (tmp_path / "ckpt-8_temp").mkdir()
    (tmp_path / "ckpt-8_temp" / f"part-00000-of-00001.{DATA}").write_text("")
    (tmp_path / f"ckpt-8.{DATA}").write_text("")
    assert restored(tmp_path) == 4
    write(tmp_path, [8, 12], keep=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "checkpoint", f"ckpt-12.{DATA}", "ckpt-12.index", "ckpt-12.json"]


def test_the_file_that_names_the_newest_has_no_effect(trained, capsys):
    (trained / "checkpoint").write_text('model_checkpoint_path: "ckpt-52"')
    assert restored(trained) == 60
    (trained / "checkpoint").unlink()
    assert restored(trained) == 60
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", [
    lambda path: (path / "ckpt-60.json").unlink(),
    lambda path: (path / f"ckpt-60.{DATA}").unlink(),
    lambda path: flip(path / f"ckpt-60.{DATA}"),
    lambda path: (path / "ckpt-60.json").write_bytes(b"\xff{"),
    lambda path: (path / "ckpt-60.json").write_text(
        (path / "ckpt-60.json").read_text().replace('"step": 60', '"step": 61')),
    lambda path: (path / "ckpt-60.json").write_bytes((path / "ckpt-56.json").read_bytes()),
    lambda path: [(path / f"ckpt-60.{end}").write_bytes((path / f"ckpt-56.{end}").read_bytes())
                  for end in ("index", DATA)]],
    ids=["not finished", "data gone", "data flipped", "seal is garbage", "seal of another step",
         "seal is another's", "files of 56"])
def test_a_damaged_newest_checkpoint_is_reported_and_the_one_before_used(
        trained, damage, capsys):
    damage(trained)
    assert restored(trained) == 56
    (line,) = capsys.readouterr().err.splitlines()
    assert "ckpt-60" in line and "step 56" in line


def test_a_run_whose_checkpoints_are_all_damaged_is_refused_and_keeps_them(trained):
    for step in (52, 56, 60):
        flip(trained / f"ckpt-{step}.{DATA}")
    with refused("ckpt-60 is damaged.*from a copy.*--restart"):
        restored(trained)
    assert checkpoint_files.steps(trained) == [60, 56, 52]


def test_a_run_killed_in_its_first_checkpoint_restores_none(tmp_path):
    write(tmp_path, [4])
    for name in ("ckpt-4.json", "ckpt-4.index", "checkpoint"):
        (tmp_path / name).unlink()
    assert restored(tmp_path) is None


def test_damaged_checkpoints_stay_until_a_newer_one_is_saved(trained):
    flip(trained / f"ckpt-60.{DATA}")
    _, manager = manager_of(trained, keep=1)
    manager.restore_or_initialize()
    manager.save(58)
    assert checkpoint_files.steps(trained) == [60, 58]
    manager.save(62)
    assert checkpoint_files.steps(trained) == [62]


def test_files_of_other_names_are_never_touched(trained):
    names = ("ckpt-old.index", "my-ckpt-4.index", "notes.txt", "ckpt-4.index.bak")
    for name in names:
        (trained / name).write_text("mine")
    write(trained, steps=(100, 104, 108))
    assert all((trained / name).read_text() == "mine" for name in names)


def test_what_a_process_killed_after_its_last_seal_left_to_do_is_done_by_the_next(
        trained, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_files, "retain", lambda *_: None)  # Killed before it.
        write(trained, [64])
    _, manager = manager_of(trained, keep=2)
    manager.restore_or_initialize()
    assert checkpoint_files.steps(trained) == [64, 60]
    assert tf.train.latest_checkpoint(str(trained)) == str(trained / "ckpt-64")
    _, other = manager_of(trained, keep=1, is_chief=False)
    other.restore_or_initialize()
    other.close()
    assert checkpoint_files.steps(trained) == [64, 60]
