"""Full disks, read-only directories, damaged shards and a clock that goes back, one by one."""

import contextlib
import errno
import itertools
import json
import os
import pathlib
import resource
import shutil
import time
from unittest import mock

import pytest

from electra_tf.checkpoints import checkpoint_files
from electra_tf.core.errors import UserError
from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE, train
from tests.support import named_arrays

FINETUNING = ("--task=classification", "--train_batch_size=8", "--max_seq_length=16",
              "--num_train_epochs=1", *HARDWARE)
ROWS = "text\tlabel\n" + "word1 word7\tyes\nword2 word3\tno\n" * 8


@pytest.fixture
def copied(records, tmp_path):
    """A copy of the records that a test may damage."""
    return shutil.copytree(records, tmp_path / "records")


@pytest.fixture
def table(tmp_path):
    (tmp_path / "rows.tsv").write_text(ROWS)
    return tmp_path / "rows.tsv"


def finetune(encoder, table, model_dir, *flags):
    commands.finetune(f"--init_checkpoint={encoder}", f"--train={table}", f"--dev={table}",
                      f"--model_dir={model_dir}", *FINETUNING, *flags)


def export(model_dir, target):
    commands.export(f"--model_dir={model_dir}", f"--output={target}")


def assert_equal_weights(run, other):
    named_arrays.assert_close(named_arrays.of_run(run), named_arrays.of_run(other), atol=1e-6)


@contextlib.contextmanager
def files_up_to(size):
    """What a full disk looks like to a writer: the write past the limit fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(records, encoder, table, tmp_path):
    train(records, tmp_path / "whole")
    with files_up_to(40_000), pytest.raises(UserError, match="step 2 can't be written"):
        train(records, tmp_path / "run")
    train(records, tmp_path / "run")
    assert_equal_weights(tmp_path / "run", tmp_path / "whole")
    with files_up_to(20_000), pytest.raises(UserError, match="step 1 can't be written"):
        finetune(encoder, table, tmp_path / "task")
    finetune(encoder, table, tmp_path / "task")
    assert len(json.loads((tmp_path / "task" / "results.json").read_text())["trials"]) == 1
    with files_up_to(10_000), pytest.raises(UserError, match=str(tmp_path / "served")):
        export(encoder, tmp_path / "served")
    assert not any(path.is_file() for path in (tmp_path / "served").rglob("*"))
    export(encoder, tmp_path / "served")
    assert (tmp_path / "served" / "1" / "saved_model.pb").exists()


@pytest.fixture
def read_only(monkeypatch):
    """Nothing can be renamed or made; a file system mounted read-only says so."""
    refusal = OSError(errno.EROFS, os.strerror(errno.EROFS))
    for name in ("mkdir", "replace", "write_bytes"):
        monkeypatch.setattr(pathlib.Path, name, mock.Mock(side_effect=refusal))


def test_a_read_only_directory_is_one_line(records, encoder, table, tmp_path, read_only):
    for name, call in (("run", lambda: train(records, tmp_path / "run")),
                       ("task", lambda: finetune(encoder, table, tmp_path / "task")),
                       ("served", lambda: export(encoder, tmp_path / "served"))):
        with pytest.raises(UserError, match=f"{tmp_path / name}.*Read-only"):
            call()


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_damaged_shards_are_named_before_a_run_is_begun(copied, tmp_path):
    flip(copied / "train-00001.tfrecord")
    with pytest.raises(UserError, match="train-00001.* is not the shard that.*--overwrite"):
        train(copied, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_damaged_shards_that_were_not_verified_end_training_in_one_line(copied, tmp_path):
    flip(copied / "train-00001.tfrecord")
    with pytest.raises(UserError, match="train-00001.tfrecord isn.t what manifest.json says.*cut"):
        train(copied, tmp_path / "run", "--set=runtime.verify_checksums=false",
              "--num_train_steps=16")


@pytest.mark.slow
def test_a_clock_that_goes_back_changes_nothing(records, tmp_path, monkeypatch):
    train(records, tmp_path / "whole", "--num_train_steps=6")
    now = time.time()
    seconds = itertools.count()
    monkeypatch.setattr(time, "time", lambda: now - 10**7 - next(seconds))
    train(records, tmp_path / "run", "--num_train_steps=6")
    for order, path in enumerate(sorted((tmp_path / "run").rglob("*"), reverse=True)):
        os.utime(path, (now - 10**6 * order, now - 10**6 * order))
    # Steps 5 and 6 are trained again, by a machine that takes the newest file for the oldest.
    checkpoint_files.remove(tmp_path / "run" / "checkpoints", {6})
    monkeypatch.setattr(time, "time", lambda: now - 10**8 - next(seconds))
    train(records, tmp_path / "run", "--num_train_steps=6")
    assert_equal_weights(tmp_path / "run", tmp_path / "whole")
