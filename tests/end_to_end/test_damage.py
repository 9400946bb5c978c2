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

import numpy as np
import pytest

from electra_tf.checkpoints.weights import read_weights
from electra_tf.platform.errors import UserError
from tests import tiny_run
from tests.end_to_end import commands
from tests.end_to_end.commands import HARDWARE

PRETRAINING = ("--model_size=tiny", "--save_checkpoints_steps=2", "--log_every_steps=2",
               "--sample_every_steps=0", "--eval_steps=1", *HARDWARE, *tiny_run.FLAGS)
FINETUNING = ("--task=classification", "--train_batch_size=8", "--max_seq_length=16",
              "--num_train_epochs=1", *HARDWARE)
ROWS = "text\tlabel\n" + "word1 word7\tyes\nword2 word3\tno\n" * 8


@pytest.fixture
def copied(records, tmp_path):
    """A copy of the records that a test may damage."""
    return shutil.copytree(records, tmp_path / "records")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "rows.tsv"
    path.write_text(ROWS)
    return path


def pretrain(records, model_dir, *flags, steps=4):
    commands.pretrain(f"--data_dir={records}", f"--model_dir={model_dir}",
                      f"--num_train_steps={steps}", *PRETRAINING, *flags)


def finetune(encoder, table, model_dir, *flags):
    commands.finetune(f"--init_checkpoint={encoder}", f"--train={table}", f"--dev={table}",
                      f"--model_dir={model_dir}", *FINETUNING, *flags)


def export(model_dir, target):
    commands.export(f"--model_dir={model_dir}", f"--export_dir={target}")


@contextlib.contextmanager
def files_up_to(size):
    """What a full disk looks like to a writer: the write past the limit fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def one_line(*words):
    with pytest.raises(UserError) as caught:
        yield
    assert str(caught.value).isprintable()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
class TestAFullDisk:
    def test_in_training_is_one_line_and_the_same_command_goes_on(self, records, tmp_path):
        pretrain(records, tmp_path / "whole")
        with files_up_to(40_000), one_line("can't be written", "step 2"):
            pretrain(records, tmp_path / "run")
        pretrain(records, tmp_path / "run")
        whole, again = (read_weights(tmp_path / name) for name in ("whole", "run"))
        for name, value in whole.items():
            np.testing.assert_allclose(again[name], value, atol=1e-6)

    def test_in_fine_tuning_is_one_line_and_the_same_command_goes_on(
            self, encoder, table, tmp_path):
        with files_up_to(20_000), one_line("can't be written", "step 1"):
            finetune(encoder, table, tmp_path / "run")
        finetune(encoder, table, tmp_path / "run")
        assert len(json.loads((tmp_path / "run" / "results.json").read_text())["trials"]) == 1

    def test_in_an_export_is_one_line_and_leaves_no_version(self, encoder, tmp_path):
        with files_up_to(10_000), one_line(str(tmp_path / "served")):
            export(encoder, tmp_path / "served")
        left = [path for path in (tmp_path / "served").rglob("*") if path.is_file()]
        assert left == []
        export(encoder, tmp_path / "served")
        assert (tmp_path / "served" / "1" / "saved_model.pb").exists()


@pytest.fixture
def read_only(monkeypatch):
    """Nothing can be renamed or made; a file system mounted read-only says so."""
    def refuse(*_arguments, **_options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("mkdir", "replace", "write_bytes"):
        monkeypatch.setattr(pathlib.Path, name, refuse)


def test_a_read_only_directory_is_one_line(records, encoder, table, tmp_path, read_only):
    for name, call in (("run", lambda: pretrain(records, tmp_path / "run")),
                       ("task", lambda: finetune(encoder, table, tmp_path / "task")),
                       ("served", lambda: export(encoder, tmp_path / "served"))):
        with one_line("Read-only", str(tmp_path / name)):
            call()


def flip(path, place=0.5):
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= 1
    path.write_bytes(content)


def exchange(directory):
    first, second = (directory / f"train-0000{index}.tfrecord" for index in (0, 1))
    before = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(before)


def put_a_foreign_one(directory):
    path = directory / "train-00001.tfrecord"
    size = path.stat().st_size
    path.write_bytes((directory / "train-00002.tfrecord").read_bytes()[:size])


DAMAGES = {
    "truncated": lambda directory: os.truncate(directory / "train-00001.tfrecord", 100),
    "flipped": lambda directory: flip(directory / "train-00001.tfrecord"),
    "exchanged": exchange,
    "missing": lambda directory: (directory / "train-00001.tfrecord").unlink(),
    "foreign": put_a_foreign_one,
}


class TestDamagedShards:
    @pytest.mark.parametrize("damage", list(DAMAGES))
    def test_are_named_before_a_run_is_begun(self, copied, tmp_path, damage):
        DAMAGES[damage](copied)
        with one_line("train-0000", "is not the shard that was built", "--overwrite"):
            pretrain(copied, tmp_path / "run")
        assert not (tmp_path / "run").exists()

    @pytest.mark.slow
    @pytest.mark.parametrize("place", [0.1, 0.5])
    def test_that_nobody_looked_at_end_training_in_one_line(self, copied, tmp_path, place):
        flip(copied / "train-00001.tfrecord", place)
        with one_line("the records are damaged", "verify_checksums=true"):
            pretrain(copied, tmp_path / "run", "--set=runtime.verify_checksums=false", steps=16)


@pytest.mark.slow
def test_a_clock_that_goes_back_changes_nothing(records, tmp_path, monkeypatch):
    pretrain(records, tmp_path / "whole", steps=6)
    now = time.time()
    seconds = itertools.count()
    monkeypatch.setattr(time, "time", lambda: now - 10**7 - next(seconds))
    pretrain(records, tmp_path / "run", steps=6)
    for order, path in enumerate(sorted((tmp_path / "run").rglob("*"), reverse=True)):
        os.utime(path, (now - 10**6 * order, now - 10**6 * order))
    # Steps 5 and 6 are trained again, by a machine that takes the newest file for the oldest.
    for path in (tmp_path / "run" / "checkpoints").glob("ckpt-6*"):
        path.unlink()
    monkeypatch.setattr(time, "time", lambda: now - 10**8 - next(seconds))
    pretrain(records, tmp_path / "run", steps=6)
    whole, again = (read_weights(tmp_path / name) for name in ("whole", "run"))
    for name, value in whole.items():
        np.testing.assert_allclose(again[name], value, atol=1e-6)
