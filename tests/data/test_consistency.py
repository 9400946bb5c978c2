"""A manifest whose values contradict each other, or the shards, is refused before training."""

import json

import pytest

from electra_tf.data import manifest, pipeline, shards
from electra_tf.data.example import serialize_example
from electra_tf.platform.errors import UserError
from electra_tf.training import failures
from tests import tiny_records


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    directory = tmp_path_factory.mktemp("built") / "records"
    tiny_records.write(directory)
    return directory, json.loads((directory / "manifest.json").read_text())


def changed(content, path, value):
    """A copy in which the value at a path, like "shards.0.name", is another."""
    content = json.loads(json.dumps(content))
    *outer, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    holder = content
    for part in outer:
        holder = holder[part]
    holder[last] = value
    return content


@pytest.mark.parametrize(("path", "value", "words"), [
    ("max_seq_length", 16, "can't have"),
    ("max_seq_length", 10**12, "'max_seq_length' must be less than or equal to 65536"),
    ("token_bytes", 4, "token_bytes is 4, but ids of 40 entries take 2"),
    ("packing", "tight", "'packing' must be 'full' or 'reference'"),
    ("vocabulary.size", -1, "vocabulary.size must be"),
    ("shards.0.name", "../train.tfrecord", "must be that of a file here"),
    ("shards.1.name", "train-00000.tfrecord", "two shards have one name"),
    ("shards.0.split", "test", "must be 'train' or 'eval'"),
    ("shards.0.examples", 31, "counts.examples is 96, but the shards have 97"),
    ("counts.padding_positions", -1, "'padding_positions' must be greater than or equal to 0"),
    ("settings", {"max_seq_length": 64}, "max_seq_length is 32, but settings say 64"),
])
def test_values_that_contradict_each_other_are_refused(built, tmp_path, path, value, words):
    (tmp_path / "manifest.json").write_text(json.dumps(changed(built[1], path, value)))
    with pytest.raises(UserError) as caught:
        manifest.load(tmp_path)
    assert words in str(caught.value)
    assert "--overwrite" in str(caught.value)


def written(tmp_path, lengths, *, claimed, packing="full", size=40):
    """A directory whose manifest fits itself, with examples of other lengths than it says."""
    (tmp_path / "records").mkdir()
    shard = shards.write_shard(tmp_path / "records" / "train-00000.tfrecord", "train", [
        (serialize_example([2, *range(5, length + 3), 3], length, 2), length)
        for length in lengths])
    return manifest.Records(tmp_path / "records", manifest.Manifest(
        format_version=1, max_seq_length=claimed, packing=packing, token_bytes=2, settings={},
        vocabulary=manifest.Tokenization(
            size=size, sha256="0" * 64, lower_case=True, strip_accents=True),
        counts=tiny_records.counts_of([shard], claimed), shards=(shard,)))


@pytest.mark.parametrize(("given", "words"), [
    ({"lengths": [16, 16], "claimed": 32}, "ids has 16 tokens; max_seq_length is 32"),
    ({"lengths": [16, 16], "claimed": 8, "packing": "reference"}, "max_seq_length is 8"),
    ({"lengths": [16, 16], "claimed": 16, "size": 10}, "isn't among the 10"),
])
def test_shards_that_are_not_what_the_manifest_says_are_refused(tmp_path, given, words):
    records = written(tmp_path, **given)
    with pytest.raises(UserError, match=f"train-00000.tfrecord isn't what.*{words}"):
        pipeline.look_at_first_examples(records)


def test_training_refuses_an_unknown_id_of_any_example(tmp_path):
    records = written(tmp_path, [8, 16], claimed=16, packing="reference", size=12)
    pipeline.look_at_first_examples(records)
    batches = pipeline.first_examples(records, 2, 0)
    with pytest.raises(UserError, match="an id .* is not among the 12.*inspect_records"):
        with failures.explained():
            list(batches)


def test_what_was_built_passes_and_so_does_the_only_short_example_of_a_shard(built, tmp_path):
    pipeline.look_at_first_examples(manifest.Records.load(built[0]))
    pipeline.look_at_first_examples(written(tmp_path, [16], claimed=32))


def test_a_file_that_holds_no_examples_is_refused(tmp_path):
    records = written(tmp_path, [16, 16], claimed=16)
    for content, words in ((b"", "has 0 examples instead of 2"),
                           (b"no record at all, whatever it is called", "record is cut off")):
        (tmp_path / "records" / "train-00000.tfrecord").write_bytes(content)
        with pytest.raises(UserError, match=words):
            pipeline.look_at_first_examples(records)
