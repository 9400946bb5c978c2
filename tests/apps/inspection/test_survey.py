"""What is counted, against every example read by itself."""

import collections

import numpy as np
import tensorflow as tf

from electra_tf.apps.inspection import reading, survey
from electra_tf.data import manifest, reader
from electra_tf.data.example import serialize_example, stored_ids
from electra_tf.data.shards import write_shard
from electra_tf.platform import storage
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import numbered_records, tiny_records


def written(directory, vocabulary, **splits):
    """Records of given ids, two bytes each, in one segment of 16 tokens at most."""
    directory.mkdir()
    vocabulary.save(directory / manifest.VOCABULARY_NAME)
    shards = [write_shard(directory / f"{split}.tfrecord", split, [
        (serialize_example(ids, len(ids), 2), len(ids)) for ids in examples])
        for split, examples in splits.items()]
    manifest.Manifest(
        format_version=1, max_seq_length=16, packing="reference", token_bytes=2, settings={},
        counts=tiny_records.counts_of(shards, 16), shards=tuple(shards),
        vocabulary=manifest.Tokenization(size=vocabulary.size, sha256=vocabulary.sha256,
                                         lower_case=True, strip_accents=True)).save(directory)
    return reading.open_records(storage.path(directory))


def test_everything_is_counted(data_dir, monkeypatch):
    monkeypatch.setattr(reader, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    found = survey.survey(reading.open_records(data_dir))
    for split, counts in found.splits.items():
        examples = [stored_ids(serialized, 2)[0]
                    for shard in manifest.load(data_dir).shards_of(split)
                    for serialized in tf.data.TFRecordDataset(
                        str(data_dir / shard.name)).as_numpy_iterator()]
        assert counts.examples == len(examples) > 0
        assert list(counts.lengths) == [
            sum(len(ids) == length for ids in examples)
            for length in range(tiny_records.LENGTH + 1)]
        pieces = collections.Counter(int(each) for ids in examples for each in ids)
        assert list(counts.pieces) == [pieces[index] for index in range(40)]


def test_copies_and_leaks_are_found(tmp_path):
    draw = np.random.default_rng(1)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *(f"w{index}" for index in range(995))))
    fresh = iter(draw.permutation(np.arange(5, 1000)).reshape([-1, 5]).tolist())

    def text(words):
        return [each for _ in range(words // 5) for each in next(fresh)]

    shared, whole = text(10), text(10)
    train = [text(10) for _ in range(20)]
    train += [whole, [*shared, *text(5)[:4]], [*text(5)[:2], *shared], train[0]]
    held_out = [text(10), whole, [*text(5)[:3], *shared], text(10)]
    found = survey.survey(written(tmp_path / "records", vocabulary, **{
        split: [[vocabulary.cls_id, *words, vocabulary.sep_id] for words in examples]
        for split, examples in (("train", train), ("eval", held_out))}))
    assert found.passage == 8
    assert (found.rows.total, found.rows.copies, found.rows.one_in) == (24, 1, 1)
    # Passages of 8: three of the repeated example, three of the shared ten tokens.
    assert found.passages.copies == 6
    assert {tuple(each.ids) for each in found.most_frequent} == {
        tuple(train[0][:8]), tuple(shared[:8])}
    assert all(each.copies == 2 for each in found.most_frequent)
    assert list(found.held_out.rows.seen) == [False, True, False, False]
    seen = found.held_out.passages.seen
    assert collections.Counter(found.held_out.hashes.row[seen].tolist()) == {1: 3, 2: 3}
    assert [(each.place.number, each.copies, tuple(each.ids)) for each in found.leaked] == [
        (1, 3, tuple(whole[:8])), (2, 3, tuple(shared[:8]))]


def test_many_held_out_examples_are_sampled_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr(survey, "MOST_HELD_OUT", 10)
    monkeypatch.setattr(reader, "TOKENS_TOGETHER", 4 * numbered_records.LENGTH)
    numbered_records.write(tmp_path / "records", [5], held_out=35)
    records = reading.open_records(storage.path(tmp_path / "records"))
    kept = survey.survey(records).held_out
    assert [number for _, number, _ in numbered_records.said(kept.ids)] == list(range(5, 40, 4))
