"""The manifest says what a directory holds; what contradicts it, or itself, is refused."""

import dataclasses
import json
import shutil

import pytest
import tensorflow as tf

from electra_tf.core.errors import UserError
from electra_tf.data import manifest, pipeline, shards
from electra_tf.data.manifest import Counts
from electra_tf.text.vocabulary import Vocabulary
from electra_tf.training import failures
from tests.support import tiny_records
from tests.support.tiny_records import serialize_example


def test_counts_add_up():
    assert Counts(words=1, lines=2) + Counts(words=2) == Counts(words=3, lines=2)


def test_the_fingerprint_follows_the_examples_and_nothing_else(records):
    made = manifest.load(records)
    same = dataclasses.replace(made, settings={"seed": 1}, counts=Counts())
    changed = [
        dataclasses.replace(made, max_seq_length=64),
        dataclasses.replace(made, vocabulary=dataclasses.replace(made.vocabulary, sha256="b" * 64)),
        dataclasses.replace(made, shards=made.shards[:1]),
        dataclasses.replace(made, shards=(
            dataclasses.replace(made.shards[0], sha256="0"), *made.shards[1:])),
    ]
    assert same.fingerprint == made.fingerprint
    assert len({made.fingerprint, *(other.fingerprint for other in changed)}) == 5


@pytest.mark.parametrize(("damage", "message"), [
    (lambda path: path.unlink(), "it cannot be read"),
    (lambda path: path.write_bytes(b"ab"), r"it has 2 bytes instead of \d+"),
    (lambda path: path.write_bytes(path.read_bytes()[::-1]), "wrong checksum"),
])
def test_a_missing_truncated_or_changed_shard_is_named_with_the_fix(
        records, tmp_path, damage, message):
    copy, made = shutil.copytree(records, tmp_path / "copy"), manifest.load(records)
    damage(copy / "eval-00000.tfrecord")
    with pytest.raises(UserError, match=f"eval-00000.tfrecord.*{message}.*--overwrite"):
        manifest.verify_shards(copy, made)
    if message == "wrong checksum":
        manifest.verify_shards(copy, made, checksums=False)


def test_records_of_earlier_builds_are_read_with_their_fingerprint(records, tmp_path):
    path = shutil.copytree(records, tmp_path / "records") / "manifest.json"
    content = json.loads(path.read_text())
    content["counts"] |= {"boilerplate_lines": 0, "other_language_documents": 0,
                          "hangul_characters": 0, "unknown_by_script": {"Latin": 3}}
    path.write_text(json.dumps(content))
    assert manifest.load(path.parent).fingerprint == manifest.load(records).fingerprint


def test_a_missing_manifest_means_an_unfinished_build_or_another_directory(tmp_path):
    with pytest.raises(UserError, match="did not finish.*data_prep.build_pretraining_data"):
        manifest.load(tmp_path)
    with pytest.raises(UserError, match="no_such_place/manifest.json does not exist"):
        manifest.load(tmp_path / "no_such_place")


@pytest.mark.parametrize(("path", "value", "words"), [
    ("format_version", 2, "'format_version' must be 1. Received: 2"),
    ("surprise", 1, "surprise"),
    ("max_seq_length", 16, "can't have"),
    ("token_bytes", 4, "token_bytes is 4, but ids of 40 entries take 2"),
    ("shards.0.name", "../train.tfrecord", "must be a plain file name"),
    ("shards.1.name", "train-00000.tfrecord", "two shards have the same name"),
    ("counts.examples", 97, "counts.examples is 97, but the shards' and the other counts give 96"),
    ("settings", {"max_seq_length": 64}, "max_seq_length is 32, but settings say 64"),
    ("shards.0.split", "eval", "'train-00000.tfrecord' is not the name of a shard of the split"),
    ("shards.0.tokens", 300, "can't have 300 tokens in 30 examples and "),
    ("counts.special_tokens", 10, "counts.special_tokens is 10, but"),
    ("counts.single_segment_examples", 97, "is more than the total"),
])
def test_values_that_contradict_each_other_are_refused(records, tmp_path, path, value, words):
    content = json.loads((records / "manifest.json").read_text())
    *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    holder = content
    for part in outer:
        holder = holder[part]
    holder[last] = value
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(UserError) as caught:
        manifest.load(tmp_path)
    assert words in str(caught.value)
    assert "--overwrite" in str(caught.value)


def written(tmp_path, lengths, *, claimed, packing="full", size=40):
    """A manifest that fits itself, with examples of other lengths than it says."""
    (tmp_path / "records").mkdir()
    shard = shards.write_shard(tmp_path / "records" / "train-00000.tfrecord", "train", [
        (serialize_example([2, *range(5, length + 3), 3], length, 2), length)
        for length in lengths])
    return tiny_records.manifest_of(
        [shard], max_seq_length=claimed, packing=packing, vocabulary=Vocabulary(
            tiny_records.VOCABULARY.tokens[:size])).records(tmp_path / "records")


@pytest.mark.parametrize(("given", "words"), [
    ({"lengths": [16, 16], "claimed": 32}, "ids has 16 tokens; max_seq_length is 32"),
    ({"lengths": [16, 16], "claimed": 8, "packing": "reference"}, "max_seq_length is 8"),
    ({"lengths": [16, 16], "claimed": 16, "size": 10}, "isn't in the vocabulary of 10"),
])
def test_shards_that_are_not_what_the_manifest_says_are_refused(tmp_path, given, words):
    records = written(tmp_path, **given)
    with pytest.raises(UserError, match=f"train-00000.tfrecord isn't what.*{words}"):
        shards.check_first_examples(records)


def test_training_refuses_an_unknown_id_of_any_example(tmp_path):
    records = written(tmp_path, [8, 16], claimed=16, packing="reference", size=12)
    shards.check_first_examples(records)
    with pytest.raises(UserError, match="record 1: ids has 1., which isn.t in the vocab"):
        with failures.explained(lambda: shards.require_readable(records)):
            list(pipeline.training_batches(
                records, pad_id=0, seed=1, buffer_examples=2, global_batch_size=2, first_step=0,
                last_step=1, input_context=tf.distribute.InputContext()))


def test_one_short_example_is_accepted_and_an_empty_file_is_refused(tmp_path):
    shards.check_first_examples(written(tmp_path, [16], claimed=32))
    shutil.rmtree(tmp_path / "records")
    records = written(tmp_path, [16, 16], claimed=16)
    for content, words in ((b"", "has 0 examples instead of 2"),
                           (b"no record at all, whatever it is called", "record is cut off")):
        (tmp_path / "records" / "train-00000.tfrecord").write_bytes(content)
        with pytest.raises(UserError, match=words):
            shards.check_first_examples(records)
