"""What is read and counted, against every example read by itself; damage is named."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.inspection import survey
from electra_tf.data import manifest, reader
from electra_tf.data.records import stored_ids
from electra_tf.data.shards import write_shard
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from tests.support import numbered_records, tiny_records
from tests.support.tiny_records import serialize_example


def test_every_example_is_where_its_number_says(tmp_path):
    numbered_records.write(tmp_path / "records", [30, 6, 50], held_out=4)
    records = survey.open_records(storage.path(tmp_path / "records"))
    numbers = [number for batch in records.batches("train")
               for number in numbered_records.said(batch.ids)]
    assert numbers == list(range(86))
    for number in (0, 29, 30, 36, 85):
        example = records.example(records.place("train", number))
        assert numbered_records.said(example.ids) == [number]


def test_everything_is_counted(data_dir, monkeypatch):
    monkeypatch.setattr(reader, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    found = survey.survey(survey.open_records(data_dir))
    for split, counts in found.splits.items():
        examples = [stored_ids(serialized, 2)[0]
                    for shard in manifest.load(data_dir).shards_of(split)
                    for serialized in tf.data.TFRecordDataset(
                        str(data_dir / shard.name)).as_numpy_iterator()]
        assert len(examples) == found.records.examples(split) > 0
        assert list(counts.lengths) == [
            sum(len(ids) == length for ids in examples)
            for length in range(tiny_records.LENGTH + 1)]
        pieces = collections.Counter(int(each) for ids in examples for each in ids)
        assert list(counts.pieces) == [pieces[index] for index in range(40)]


def test_copies_and_leaks_are_counted(data_dir):
    words = np.arange(5, 40)
    texts = {"train": [words[:9], words[:8], words[1:9], words[:9], words[:9], words[1:10]],
             "eval": [words[1:9], words[2:9], words[:9]]}
    shards = [write_shard(data_dir / f"{split}.tfrecord", split, [
        (serialize_example([2, *ids, 3], len(ids) + 2, 2), len(ids) + 2) for ids in texts[split]])
        for split in texts]
    tiny_records.manifest_of(shards).save(data_dir)
    found = survey.survey(survey.open_records(data_dir))
    assert (found.copies, found.leaked) == (2, 2)


def test_another_vocabulary_is_one_line(data_dir):
    path = data_dir / "vocab.txt"
    path.write_text(path.read_text() + "another\n")
    with pytest.raises(UserError, match="isn't the vocabulary of these records: it has 41 pieces"):
        survey.open_records(data_dir)
    path.unlink()
    with pytest.raises(UserError, match="cannot read the vocabulary"):
        survey.open_records(data_dir)
