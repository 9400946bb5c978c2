"""Records hold all text, and do not depend on the number of workers or on interruptions."""

import hashlib
import json

import pytest
import tensorflow as tf

from data_prep import pipeline
from electra_tf.core import atomic_file
from electra_tf.core.errors import UserError
from electra_tf.data import manifest
from electra_tf.data.pipeline import parse_examples
from electra_tf.text.normalization import TextSettings
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary
from tests.data_prep.reading import contents


def stored_ids(directory, made, vocabulary, split):
    """Returns the ids of a split's examples, one after another, without padding."""
    ids = []
    for shard in made.shards_of(split):
        for record in tf.data.TFRecordDataset(str(directory / shard.name)).batch(256):
            batch = parse_examples(record, made.records(directory), vocabulary.pad_id)
            ids += tf.boolean_mask(batch.ids, batch.padding_mask).numpy().tolist()
    return ids


@pytest.mark.parametrize(("packing", "max_seq_length"), [("full", 64), ("reference", 8)])
def test_every_token_is_in_the_records_once_and_in_order(
        build, corpus, vocabulary, tmp_path, packing, max_seq_length):
    made = build(packing=packing, max_seq_length=max_seq_length, held_out_fraction=0.0)
    text = "".join(path.read_text() for path in sorted(corpus.iterdir()))
    lines = [line for line in text.splitlines() if line]
    tokenizer = Tokenizer(TextSettings(vocabulary=vocabulary))
    expected = tokenizer.tokenize(tf.constant(lines)).flat_values.numpy().tolist()
    special = {vocabulary.cls_id, vocabulary.sep_id}
    stored = stored_ids(tmp_path / "records", made, vocabulary, "train")
    assert [token for token in stored if token not in special] == expected
    counts = made.counts
    assert (counts.documents, counts.lines, counts.words, counts.text_bytes) == (
        200, len(lines), len(text.split()), sum(map(len, lines)))
    assert counts.text_tokens == counts.content_tokens == len(expected)
    assert counts.content_tokens + counts.special_tokens == len(stored)
    assert sum(shard.tokens for shard in made.shards) == len(stored)
    assert counts.padding_positions == counts.examples * max_seq_length - len(stored)
    assert counts.examples == sum(shard.examples for shard in made.shards)


def test_bytes_do_not_depend_on_the_number_of_workers(build, tmp_path):
    one, two = build("one"), build("two", num_workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one == two and len(one.shards_of("train")) == 4
    assert one.fingerprint != build("seed", seed=1).fingerprint


def test_a_finished_build_is_kept_and_refuses_another(build, vocabulary, tmp_path):
    directory = tmp_path / "records"
    made = build()
    assert manifest.load(directory) == made
    manifest.verify_shards(directory, made)
    assert Vocabulary.load(directory / "vocab.txt") == vocabulary
    names = {path.name for path in directory.iterdir()}
    assert names == {"manifest.json", "vocab.txt", "vocab.txt.manifest.json",
                     *(shard.name for shard in made.shards)}
    before = {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    assert build() is None
    assert before == {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    for change in ({"max_seq_length": 16}, {"packing": "reference"}, {"seed": 3},
                   {"lower_case": False}, {"strip_accents": False}, {"held_out_fraction": 0.2},
                   {"shard_text_bytes": 40_000}, {"single_segment_rate": 0.2}):
        with pytest.raises(UserError, match=f"another build: {next(iter(change))}.*--overwrite"):
            build(**change)
    with atomic_file.lock_directory(directory, ""), pytest.raises(
            UserError, match="another process is building in --output_dir=.*/records; wait"):
        build(overwrite=True)
    shard = directory / "train-00001.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(UserError, match="train-00001.tfrecord.*--overwrite"):
        build()
    (directory / "manifest.json").unlink()
    with pytest.raises(UserError, match="shards of an unknown build.*--overwrite"):
        build()
    after = build(overwrite=True, shard_text_bytes=90_000)
    assert len(after.shards) < len(made.shards)
    assert {path.name for path in directory.glob("*.tfrecord")} == {
        shard.name for shard in after.shards}


def test_a_restart_builds_only_missing_or_changed_shards(build, stopped_build, tmp_path):
    build("whole")
    stopped_build(2)
    directory = tmp_path / "records"
    with pytest.raises(UserError, match="did not finish"):
        manifest.load(directory)
    changed, kept = sorted(directory.glob("*.tfrecord"))
    changed.write_bytes(changed.read_bytes()[:-1] + b"?")
    before = kept.stat().st_mtime_ns
    with pytest.raises(UserError, match="holds another build: seed"):
        build(seed=1)
    build()
    assert before == kept.stat().st_mtime_ns
    assert contents(directory) == contents(tmp_path / "whole")


def test_a_changed_corpus_and_one_of_blank_lines_are_refused(build, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n \n\t\n")
    with pytest.raises(UserError, match="holds no text"):
        build(text=str(text))
    assert not (tmp_path / "records" / "manifest.json").exists()
    text.write_text("one line\n")
    build("one", text=str(text))
    text.write_text("another line\n")
    with pytest.raises(UserError, match="holds another build: corpus_sha256"):
        build("one", text=str(text))


@pytest.mark.parametrize(("packing", "expected"), [
    ("full", "8a10ff1aece14bf1"), ("reference", "f2a3f9ef7e8bd7b9")])
def test_equal_arguments_give_equal_bytes_in_every_version(
        build, packing, expected, monkeypatch):
    """Also where a batch of text has no example."""
    for name, characters in (("one", pipeline.BATCH_CHARACTERS), ("small", 20)):
        monkeypatch.setattr(pipeline, "BATCH_CHARACTERS", characters)
        shards = build(name, packing=packing).shards
        digest = hashlib.sha256(json.dumps([shard.sha256 for shard in shards]).encode())
        assert digest.hexdigest()[:16] == expected
