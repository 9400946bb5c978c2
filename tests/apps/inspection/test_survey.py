"""Counts and masked examples, compared with every example read by itself."""

import collections
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.inspection import report
from electra_tf.apps.inspection.survey import masked_examples, take_survey
from electra_tf.config.corruption import MaskingConfig
from electra_tf.data import manifest, shards
from electra_tf.data.records import stored_ids
from electra_tf.data.shards import write_shard
from electra_tf.platform.errors import UserError
from electra_tf.text.vocabulary import MASK, SPECIAL_TOKENS
from tests.support import tiny_records
from tests.support.tiny_records import serialize_example


def mask(survey, count=20, seed=1, draws=3, **masking):
    return masked_examples(survey, count, MaskingConfig(**masking), seed=seed, draws=draws)


def stored(data_dir, shard):
    """Returns the token ids of every example of a shard."""
    file = tf.data.TFRecordDataset(str(data_dir / shard.name))
    return [stored_ids(serialized, 2)[0] for serialized in file.as_numpy_iterator()]


def test_lengths_and_pieces_of_all_examples_are_counted(data_dir, monkeypatch):
    monkeypatch.setattr(shards, "TOKENS_TOGETHER", 7 * tiny_records.LENGTH)
    survey = take_survey(data_dir)
    for split, counts in survey.splits.items():
        examples = [ids for shard in manifest.load(data_dir).shards_of(split)
                    for ids in stored(data_dir, shard)]
        assert len(examples) == survey.manifest.examples(split) > 0
        assert list(counts.lengths) == [
            sum(len(ids) == length for ids in examples)
            for length in range(tiny_records.LENGTH + 1)]
        pieces = collections.Counter(int(index) for ids in examples for index in ids)
        assert list(counts.pieces) == [pieces[index] for index in range(40)]


def test_copies_and_leaks_are_counted(data_dir):
    words = np.arange(5, 40)
    texts = {"train": [words[:9], words[:8], words[1:9], words[:9], words[:9], words[1:10]],
             "eval": [words[1:9], words[2:9], words[:9]]}
    written = [write_shard(data_dir / f"{split}.tfrecord", split, [
        (serialize_example([2, *ids, 3], len(ids) + 2, 2), len(ids) + 2) for ids in texts[split]])
        for split in texts]
    tiny_records.manifest_of(written).save(data_dir)
    survey = take_survey(data_dir)
    assert (survey.copies, survey.leaked) == (2, 2)


def test_another_vocabulary_is_refused(data_dir):
    path = data_dir / "vocab.txt"
    path.write_text(path.read_text() + "another\n")
    with pytest.raises(UserError, match="isn't the vocabulary of these records: it has 41 pieces"):
        take_survey(data_dir)
    path.unlink()
    with pytest.raises(UserError, match="cannot read the vocabulary"):
        take_survey(data_dir)


def test_masked_examples_are_found_by_shard_and_number(data_dir):
    survey = take_survey(data_dir)
    assert [(example.shard.name, example.number,
             [survey.vocabulary.tokens.index(piece.token) for piece in example.pieces])
            for example in mask(survey, count=86, draws=1)] == [
        (shard.name, number, ids.tolist()) for shard in survey.manifest.shards_of("train")
        for number, ids in enumerate(stored(data_dir, shard))]


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_masks_have_the_size_of_training_and_spare_special_tokens(survey, rate):
    config = MaskingConfig(rate=rate)
    for example in mask(survey, rate=rate):
        read = np.array([piece.read for piece in example.pieces])
        selected = read != None  # noqa: E711
        predictions = config.predictions_by_length(32)[len(example.pieces)]
        assert list(selected.sum(axis=0)) == [predictions] * 3
        for piece, tokens in zip(example.pieces, read, strict=True):
            assert set(tokens) <= {None, MASK, piece.token}
            assert piece.token not in SPECIAL_TOKENS or set(tokens) == {None}


def test_a_seed_repeats_examples_and_draws_that_all_differ(survey):
    examples = mask(survey)
    assert examples == mask(survey)
    assert all(len(set(zip(*(piece.read for piece in example.pieces), strict=True))) == 3
               for example in examples)
    assert [example.title for example in examples] != [
        example.title for example in mask(survey, seed=2)]


def test_without_training_examples_held_out_ones_are_masked(survey):
    held_out = dataclasses.replace(survey, manifest=dataclasses.replace(
        survey.manifest, shards=survey.manifest.shards_of("eval")))
    assert {example.shard.split for example in mask(held_out, count=5)} == {"eval"}
    assert mask(survey, count=0) == []


def test_pieces_of_a_word_stand_together_with_marks_for_the_masks(survey, example_of):
    example = example_of("[CLS]", "un", "##able", "to", "[SEP]", "##s", "go", "##", "[SEP]",
                         read={2: MASK, 3: "to", 6: "##word"}, border=5)
    assert ("1. training, a, example 0: 9 tokens (5 + 4), 3 selected\n"
            "  A  [CLS] un«able» {to} [SEP]\n"
            "  B  s (go→word) ## [SEP]\n") in report.text(survey, [example])
