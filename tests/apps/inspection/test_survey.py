"""What is counted, against every example read by itself."""

import collections

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.inspection import reading, survey
from electra_tf.data import manifest, reader
from electra_tf.data.example import serialize_example, stored_ids
from electra_tf.data.shards import write_shard
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import numbered_records, tiny_records

EVERYTHING = 1 << 60
PAD, UNK, CLS, SEP, MASK = range(5)
WORDS = Vocabulary((*SPECIAL_TOKENS, "the", "cat", "##s", "дом", "漢", "!", "7"))


def examples_of(data_dir, split, limit=EVERYTHING):
    made = manifest.load(data_dir)
    found = []
    for shard in made.shards_of(split):
        found += [stored_ids(serialized, 2) for serialized in tf.data.TFRecordDataset(
            str(data_dir / shard.name)).as_numpy_iterator()]
    return found


def written(directory, train, held_out=(), *, vocabulary=WORDS, length=16):
    """Records of given examples, pairs of ids and length of the first segment."""
    directory.mkdir()
    vocabulary.save(directory / manifest.VOCABULARY_NAME)
    shards = [write_shard(directory / f"{split}.tfrecord", split, [
        (serialize_example(ids, first, 2), len(ids)) for ids, first in examples])
        for split, examples in (("train", train), ("eval", held_out)) if examples]
    manifest.Manifest(
        format_version=1, max_seq_length=length, packing="reference", token_bytes=2, settings={},
        counts=tiny_records.counts_of(shards, length), shards=tuple(shards),
        vocabulary=manifest.Tokenization(size=vocabulary.size, sha256=vocabulary.sha256,
                                         lower_case=True, strip_accents=True)).save(directory)
    return reading.open_records(storage.path(directory))


def test_everything_is_counted(data_dir, monkeypatch):
    monkeypatch.setattr(reader, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    found = survey.survey(reading.open_records(data_dir), EVERYTHING)
    assert found.complete
    for split, counts in found.splits.items():
        examples = examples_of(data_dir, split)
        assert counts.examples == len(examples) > 0
        assert list(counts.lengths) == [
            sum(len(ids) == length for ids, _ in examples)
            for length in range(tiny_records.LENGTH + 1)]
        pieces = collections.Counter(int(each) for ids, _ in examples for each in ids)
        assert list(counts.pieces) == [pieces[index] for index in range(40)]
        assert counts.single_segment == sum(first == len(ids) for ids, first in examples) == 0


@pytest.mark.parametrize("limit", [1, 3, 40, 85, 86, 1000])
def test_a_limit_takes_the_first_examples_of_every_shard(tmp_path, limit):
    numbered_records.write(tmp_path / "records", [30, 6, 50], held_out=4)
    records = reading.open_records(storage.path(tmp_path / "records"))
    rows = list(records.rows("train", limit))
    numbers = [number for batch in rows for _, number, _ in numbered_records.said(batch.ids)]
    assert len(numbers) == min(limit, 86) and len(set(numbers)) == len(numbers)
    starts = (0, 30, 36, 86)
    for start, stop in zip(starts, starts[1:], strict=False):
        own = [number for number in numbers if start <= number < stop]
        assert own == list(range(start, start + len(own)))
        assert abs(len(own) - min(limit, 86) * (stop - start) / 86) < 1
    for index, number in enumerate(numbers):
        example = records.example(records.place("train", index, limit))
        assert numbered_records.said(example.ids)[0][1] == number


def test_unknown_words_belong_to_the_word_before_or_else_after(tmp_path):
    records = written(tmp_path / "records", [
        ([CLS, 5, UNK, UNK, 8, UNK, SEP], 7),        # the [UNK] [UNK] дом [UNK]
        ([CLS, UNK, 10, 9, SEP, 11, UNK, SEP], 5),   # [UNK] ! 漢 | 7 [UNK]
        ([CLS, UNK, 10, SEP], 4)], [([CLS, 6, 7, UNK, SEP], 5)])
    found = survey.survey(records, EVERYTHING)
    beside = {split: dict(zip((*found.script_names, None), counts.beside_unknown.tolist(),
                              strict=True)) for split, counts in found.splits.items()}
    assert beside["train"] == {"Latin": 2, "Cyrillic": 1, "Han": 2, "signs": 0, "digits": 0,
                               None: 1}
    assert beside["eval"]["Latin"] == 1 and sum(beside["eval"].values()) == 1


def test_scripts_come_most_frequent_first(tmp_path):
    found = survey.survey(written(tmp_path / "records", [
        ([CLS, 8, 8, 8, 9, 9, 5, SEP], 8)]), EVERYTHING)
    named = [name for name in found.script_names if name != "signs"]
    assert named[:3] == ["Cyrillic", "Han", "Latin"]
    assert [found.script_names[found.script[index]] for index in (5, 7, 8, 9, 10, 11)] == [
        "Latin", "Latin", "Cyrillic", "Han", "signs", "digits"]


def row(numbers):
    return ([CLS, *numbers, SEP], len(numbers) + 2)


def test_copies_and_leaks_are_found(tmp_path):
    draw = np.random.default_rng(1)
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *(f"w{index}" for index in range(995))))
    fresh = iter(draw.permutation(np.arange(5, 1000)).reshape([-1, 5]).tolist())

    def text(words):
        return [each for _ in range(words // 5) for each in next(fresh)]

    shared, whole = text(10), text(10)
    train = [row(text(10)) for _ in range(20)]
    train += [row(whole), row([*shared, *text(5)[:4]]), row([*text(5)[:2], *shared]), train[0]]
    held_out = [row(text(10)), row(whole), row([*text(5)[:3], *shared]), row(text(10))]
    found = survey.survey(written(tmp_path / "records", train, held_out, vocabulary=vocabulary),
                          EVERYTHING).repetition
    assert found.passage == 8
    assert (found.rows.total, found.rows.copies, found.rows.one_in) == (24, 1, 1)
    # Passages of 8: three of the repeated example, three of the shared ten tokens.
    assert found.passages.copies == 6
    assert {tuple(each.ids) for each in found.most_frequent} == {
        tuple(train[0][0][1:9]), tuple(shared[:8])}
    assert all(each.copies == 2 for each in found.most_frequent)
    assert list(found.held_out.seen_rows) == [False, True, False, False]
    assert collections.Counter(found.held_out.row[found.held_out.seen_passages].tolist()) == {
        1: 3, 2: 3}
    assert [(each.place.number, each.copies, tuple(each.ids)) for each in found.leaked] == [
        (1, 3, tuple(whole[:8])), (2, 3, tuple(shared[:8]))]


def test_many_held_out_examples_are_sampled_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr(survey, "MOST_HELD_OUT", 10)
    monkeypatch.setattr(reader, "TOKENS_TOGETHER", 4 * numbered_records.LENGTH)
    numbered_records.write(tmp_path / "records", [5], held_out=35)
    records = reading.open_records(storage.path(tmp_path / "records"))
    kept = survey.survey(records, EVERYTHING).repetition.held_out
    assert [number for _, number, _ in numbered_records.said(kept.ids)] == list(range(5, 40, 4))


@pytest.mark.parametrize(("damage", "words"), [
    (lambda path: path.unlink(), "cannot be read"),
    (lambda path: path.write_bytes(path.read_bytes()[:-9]), "bytes instead of"),
    (lambda path: path.write_bytes(b"x" * path.stat().st_size), "cut off or changed"),
    (lambda path: path.write_bytes(path.read_bytes()[:-50] + b"x" * 50), "cut off or changed")])
def test_a_damaged_shard_is_one_line(data_dir, damage, words):
    damage(data_dir / "train-00001.tfrecord")
    with pytest.raises(UserError, match=f"train-00001.tfrecord .*{words}.*--overwrite") as caught:
        survey.survey(reading.open_records(data_dir), EVERYTHING)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("serialized", "words"), [
    (b"nothing", "7 bytes are not an example"),
    (serialize_example([2, *[5] * 40, 3], 42, 2), "max_seq_length is 32, but an example has 42"),
    (serialize_example([2, 400, 3], 3, 2), "an id isn't among the 40 of the vocabulary")])
def test_a_foreign_shard_is_one_line(data_dir, serialized, words):
    path = data_dir / "train-00001.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(serialized)
    made = manifest.load(data_dir)
    content = path.read_bytes()
    shard = [shard for shard in made.shards if shard.name == path.name][0]
    path.write_bytes(content + content * (max(0, shard.bytes // len(content) - 1)))
    records = reading.Records(data_dir, made, tiny_records.VOCABULARY)
    with pytest.raises(UserError, match=f"train-00001.tfrecord isn't what.*{words}"):
        survey.survey(records, EVERYTHING)


def test_a_shard_with_fewer_examples_is_one_line(data_dir):
    made = manifest.load(data_dir)
    (data_dir / "train-00001.tfrecord").write_bytes(
        (data_dir / "eval-00000.tfrecord").read_bytes())
    records = reading.Records(data_dir, made, tiny_records.VOCABULARY)
    with pytest.raises(UserError, match="has 10 examples instead of 20"):
        survey.survey(records, EVERYTHING)


def test_another_vocabulary_is_one_line(data_dir):
    path = data_dir / "vocab.txt"
    path.write_text(path.read_text() + "another\n")
    with pytest.raises(UserError, match="isn't the vocabulary of these records: it has 41 pieces"):
        reading.open_records(data_dir)
    path.unlink()
    with pytest.raises(UserError, match="cannot read the vocabulary"):
        reading.open_records(data_dir)
