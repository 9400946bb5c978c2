"""A build on a full disk, in a read-only directory, or over what somebody changed."""

import contextlib
import json
import pathlib
import resource

import pytest

from data_prep.documents import ReadingNotes
from electra_tf.platform.errors import UserError


@contextlib.contextmanager
def files_up_to(size):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_one_line_and_the_same_build_goes_on(build, tmp_path):
    with files_up_to(10_000), pytest.raises(UserError, match="cannot write .*: .*free some space"):
        build()
    assert not list((tmp_path / "records").glob("*.tfrecord"))
    assert not (tmp_path / "records" / "manifest.json").exists()
    assert build() is not None


def test_a_receipt_that_somebody_changed_is_refused_or_its_shard_built_again(build, tmp_path):
    whole = build()
    (tmp_path / "records" / "manifest.json").rename(tmp_path / "manifest.json")
    shard = whole.shards[0]
    (tmp_path / "records" / "unfinished_build.json").write_text(json.dumps(dict(whole.settings)))
    receipt = tmp_path / "records" / f".finished-{pathlib.Path(shard.name).stem}.json"
    receipt.write_text(json.dumps({"key": "0" * 64, "shard": vars(shard) | {"tokens": 1},
                                   "notes": vars(ReadingNotes()),
                                   "counts": vars(whole.counts)}))
    assert build() == whole
    receipt.write_text("{")
    (tmp_path / "records" / "manifest.json").unlink()
    (tmp_path / "records" / "unfinished_build.json").write_text(json.dumps(dict(whole.settings)))
    with pytest.raises(UserError, match="finished-.*json is damaged: .*remove it, and its shard"):
        build()
