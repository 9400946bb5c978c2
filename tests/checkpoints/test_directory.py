"""Damage to a directory of checkpoints: the newest whole one is used, and what is lost is said."""

import pytest
import tensorflow as tf

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError

DATA = "data-00000-of-00001"


@pytest.fixture
def trained(tmp_path):
    """Checkpoints of steps 52, 56 and 60, each of a variable that holds its step."""
    write(tmp_path)
    return tmp_path


def write(directory, steps=(52, 56, 60), keep=3):
    variable = tf.Variable(0)
    manager = CheckpointManager(tf.train.Checkpoint(value=variable), directory, interval=4,
                                keep=keep)
    for step in steps:
        variable.assign(step)
        manager.save(step)


def restored(directory):
    """What a new process restores; None if it begins anew."""
    variable = tf.Variable(0)
    manager = CheckpointManager(
        tf.train.Checkpoint(value=variable), directory, interval=4, keep=3)
    return manager.restore_or_initialize() and int(variable)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


POINTER = {
    "gone": lambda path: (path / "checkpoint").unlink(),
    "names another": lambda path: (path / "checkpoint").write_text(
        'model_checkpoint_path: "ckpt-52"'),
}
NEWEST = {
    "not finished": lambda path: (path / "ckpt-60.json").unlink(),
    "data gone": lambda path: (path / f"ckpt-60.{DATA}").unlink(),
    "data flipped": lambda path: flip(path / f"ckpt-60.{DATA}"),
    "seal is garbage": lambda path: (path / "ckpt-60.json").write_bytes(b"\xff{"),
    "seal is another's": lambda path: (path / "ckpt-60.json").write_bytes(
        (path / "ckpt-56.json").read_bytes()),
    "files of 56": lambda path: [
        (path / f"ckpt-60.{end}").write_bytes((path / f"ckpt-56.{end}").read_bytes())
        for end in ("index", DATA)],
}


@pytest.mark.parametrize("damage", POINTER.values(), ids=POINTER.keys())
def test_the_file_that_names_the_newest_decides_nothing(trained, damage, capsys):
    damage(trained)
    assert restored(trained) == 60
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", NEWEST.values(), ids=NEWEST.keys())
def test_of_a_damaged_newest_one_is_told_and_the_one_before_is_used(trained, damage, capsys):
    damage(trained)
    assert restored(trained) == 56
    (line,) = capsys.readouterr().err.splitlines()
    assert "ckpt-60" in line and "step 56" in line


def test_two_damaged_ones_are_both_named(trained, capsys):
    NEWEST["data flipped"](trained)
    (trained / "ckpt-56.index").unlink()
    assert restored(trained) == 52
    line = capsys.readouterr().err
    assert "ckpt-60 is damaged" in line and "ckpt-56 lacks ckpt-56.index" in line


def test_a_run_that_lost_all_its_checkpoints_is_refused_with_the_ways_out(trained):
    for step in (52, 56, 60):
        flip(trained / f"ckpt-{step}.{DATA}")
    with pytest.raises(UserError) as error:
        restored(trained)
    for words in ("ckpt-60 is damaged", "from a copy", "--restart", "new --model_dir"):
        assert words in str(error.value)
    assert checkpoints.steps(trained) == [60, 56, 52]
    checkpoints.remove(trained, {52, 56, 60})
    with pytest.raises(UserError, match="none is left"):
        restored(trained)


def test_a_run_that_was_killed_in_its_first_checkpoint_begins_anew(tmp_path):
    write(tmp_path, steps=(4,))
    (tmp_path / "ckpt-4.json").unlink()
    (tmp_path / "ckpt-4.index").unlink()
    (tmp_path / "checkpoint").unlink()
    assert restored(tmp_path) is None


def test_damaged_ones_stay_until_something_newer_is_whole(trained):
    NEWEST["data flipped"](trained)
    variable = tf.Variable(0)
    manager = CheckpointManager(tf.train.Checkpoint(value=variable), trained, interval=2, keep=1)
    manager.restore_or_initialize()
    manager.save(58)
    assert checkpoints.steps(trained) == [60, 58]
    manager.save(62)
    assert checkpoints.steps(trained) == [62]


def test_checkpoints_live_on_another_file_system_too(tmp_path, capsys):
    remote = storage.path(f"ram:/{tmp_path}/run/checkpoints")
    write(remote, steps=(52, 56, 60, 64))
    assert restored(remote) == 64
    (remote / f"ckpt-64.{DATA}").write_bytes(b"short")
    assert restored(remote) == 60
    assert "ckpt-64 is damaged" in capsys.readouterr().err
    assert checkpoints.steps(remote) == [64, 60, 56]


def test_files_of_other_names_are_never_touched(trained):
    for name in ("ckpt-old.index", "my-ckpt-4.index", "notes.txt", "ckpt-4.index.bak"):
        (trained / name).write_text("mine")
    write(trained, steps=(100, 104, 108))
    for name in ("ckpt-old.index", "my-ckpt-4.index", "notes.txt", "ckpt-4.index.bak"):
        assert (trained / name).read_text() == "mine"
