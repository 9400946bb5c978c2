"""Counts of records, compared with every example read by itself, and examples with their masks."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.tools import inspect_records
from electra_tf.config.corruption import MaskingConfig
from electra_tf.core import storage
from electra_tf.data import manifest
from electra_tf.data.records import stored_ids
from electra_tf.data.shards import write_shard
from electra_tf.text.vocabulary import Vocabulary
from tests.support import command_flags, tiny_records
from tests.support.refusals import refused
from tests.support.tiny_records import serialize_example


@pytest.fixture
def data_dir(tmp_path):
    """86 training examples in three shards and 10 held out, of 32 tokens at most."""
    tiny_records.write(tmp_path / "records")
    return storage.path(tmp_path / "records")


def counted(data_dir):
    built, vocabulary = manifest.load(data_dir), Vocabulary.load(data_dir / "vocab.txt")
    return built, vocabulary, inspect_records.count(data_dir, built, vocabulary)


def test_lengths_and_tokens_of_all_examples_are_counted(data_dir):
    built, _, statistics = counted(data_dir)
    for split, part in statistics.items():
        examples = [stored_ids(serialized, 2)[0] for shard in built.shards_of(split)
                    for serialized in tf.data.TFRecordDataset(
                        str(data_dir / shard.name)).as_numpy_iterator()]
        assert len(examples) == sum(shard.examples for shard in built.shards_of(split)) > 0
        assert sorted(part.lengths) == sorted(map(len, examples))
        tokens = collections.Counter(int(index) for ids in examples for index in ids)
        assert list(part.frequencies) == [tokens[index] for index in range(40)]


def test_copies_and_leaks_are_counted(data_dir):
    words = np.arange(5, 40)
    texts = {"train": [words[:9], words[:8], words[1:9], words[:9], words[:9], words[1:10]],
             "eval": [words[1:9], words[2:9], words[:9]]}
    written = [write_shard(data_dir / f"{split}.tfrecord", split, [
        (serialize_example([2, *ids, 3], len(ids) + 2, 2), len(ids) + 2) for ids in texts[split]])
        for split in texts]
    tiny_records.manifest_of(written).save(data_dir)
    records, *_ = inspect_records.tables(*counted(data_dir))
    copies = " ".join(records.split()).partition(" copies ")[2]
    assert copies.startswith("2 training") and ", 2 held-out" in copies


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_examples_show_as_many_masks_as_training_draws(data_dir, rate):
    built, vocabulary, statistics = counted(data_dir)
    config = MaskingConfig(rate=rate)
    examples = list(inspect_records.masked_examples(
        data_dir, built, vocabulary, 20, config, seed=1))
    expected = config.predictions_by_length(32)[statistics["train"].lengths[:20]]
    assert [text.count("«") + text.count("{") for text in examples] == list(expected)
    assert not any(f"«{token}»" in text for text in examples for token in ("[CLS]", "[SEP]"))


def test_the_command_prints_tables_and_examples(data_dir, capsys):
    command_flags.run(inspect_records, "--examples=2", names=[data_dir])
    printed = capsys.readouterr().out
    assert all(title in printed for title in ("Records", "Lengths", "Tokens", "Examples"))
    assert printed.count("[CLS]") >= 2 and max(map(len, printed.splitlines())) <= 100


def test_another_vocabulary_is_refused(data_dir):
    path = data_dir / "vocab.txt"
    path.write_text(path.read_text() + "another\n")
    with refused("isn't the vocabulary of these records"):
        command_flags.run(inspect_records, names=[data_dir])
