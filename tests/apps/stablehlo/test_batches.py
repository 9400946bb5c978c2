"""Without TensorFlow the same rows come in the same order, or an error that says what is wrong."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.stablehlo import batches
from electra_tf.apps.stablehlo.layout import Reading
from electra_tf.data import mixture, pipeline
from electra_tf.data.example import serialize_example
from electra_tf.platform.errors import UserError
from tests import tiny_records

BATCH, WINDOW, SEED = 8, 40, 3
BLOCK = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("batches")
    tiny_records.write(directory / "a", packing="full")
    tiny_records.write(directory / "b", seed=2, packing="full")
    tiny_records.write(directory / "short")
    return directory


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (mixture, pipeline, batches):
        monkeypatch.setattr(module, "SHARES", BLOCK)


def reading(length):
    return Reading(fingerprint="", seed=SEED, shuffle_window=WINDOW, length=length, pad_id=0)


def read(data_dir, first, last, length=tiny_records.LENGTH):
    return list(batches.training_batches(mixture.load(data_dir), reading(length),
                                         batch_size=BATCH, first_step=first, last_step=last))


@pytest.mark.parametrize(("first", "last"), [(0, 30), (17, 20)])
@pytest.mark.parametrize(("names", "length"), [
    ("short", 32), ("a", 32), ("a", 12), ("a:0.3,b:0.7", 32), ("a:0.3,b:0.7", 12)])
def test_batches_are_those_of_the_pipeline(place, names, length, first, last):
    data_dir = ",".join(str(place / name) for name in names.split(","))
    expected = list(pipeline.training_batches(
        mixture.load(data_dir), pad_id=0, seed=SEED, window_examples=WINDOW,
        global_batch_size=BATCH, first_step=first, last_step=last, length=length,
        context=tf.distribute.InputContext()))
    found = read(data_dir, first, last, length)
    assert len(found) == len(expected) == last - first
    for ours, theirs in zip(found, expected, strict=True):
        for name, value in theirs._asdict().items():
            assert getattr(ours, name).dtype == value.numpy().dtype
            np.testing.assert_array_equal(getattr(ours, name), value, err_msg=name)


@pytest.mark.parametrize("token_bytes", [2, 4])
def test_an_example_is_read_as_it_was_written(token_bytes):
    ids, boundary = batches.stored_ids(
        serialize_example([2, 300, 65535, 3], 2, token_bytes), token_bytes)
    assert ids.tolist() == [2, 300, 65535, 3] and boundary == 2


def test_any_order_of_fields_is_read():
    example = tf.train.Example.FromString(serialize_example(range(5), 3, 2))
    fields = example.features.feature
    ids = tf.train.Features(feature={"ids": fields["ids"]}).SerializeToString()
    first = tf.train.Features(feature={
        "first_segment_length": fields["first_segment_length"]}).SerializeToString()
    for content in (ids + first, first + ids):
        whole = b"\x0a" + bytes([len(content)]) + content
        assert batches.stored_ids(whole, 2)[1] == 3


@pytest.mark.parametrize("damage", [
    lambda example: example[:-1], lambda example: example[:7], lambda example: b"",
    lambda example: b"\xff" * 30, lambda example: example.replace(b"ids", b"odd")])
def test_what_is_no_example_is_refused(damage):
    with pytest.raises((ValueError, IndexError)):
        batches.stored_ids(damage(serialize_example(range(5), 3, 2)), 2)


@pytest.mark.parametrize("kept", [5, 40, -3])
def test_a_shard_that_is_cut_is_named(place, tmp_path, kept):
    copy = shutil.copytree(place / "a", tmp_path / "copy")
    for shard in copy.glob("train-*"):
        shard.write_bytes(shard.read_bytes()[:kept])
    with pytest.raises(UserError, match=r"the records are damaged: .*train-0000\d.tfrecord"):
        read(copy, 0, 30)


def test_a_shard_with_too_few_examples_is_named(place, tmp_path):
    copy = shutil.copytree(place / "a", tmp_path / "copy")
    for shard in copy.glob("train-*"):
        shard.write_bytes(b"")
    with pytest.raises(UserError, match="holds fewer examples than its manifest says"):
        read(copy, 0, 30)
