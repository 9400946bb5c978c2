"""Examples become rows that lose nothing unsaid, with the targets that their loss needs."""

import dataclasses
import itertools

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import RowBatch
from electra_tf.modeling.rng import dropout_keys
from electra_tf.tasks.kinds import base, tagging
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import QuestionExample, TaggedExample, TaskSpec, TextExample
from electra_tf.text.normalization import TextSettings
from electra_tf.text.rows import RowEncoder
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests.support.rng import rng_at

WORDS = ("a", "b", "c", "##d", ".")
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *WORDS))
CLS, SEP, UNK = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.unk_id
A, B, C, D, DOT = (VOCABULARY.ids[word] for word in WORDS)


def encoder(max_length=16):
    return RowEncoder(TextSettings(vocabulary=VOCABULARY), max_length)


def spec_of(kind, **fields):
    return TaskSpec(name=kind, kind=kind, metrics=("accuracy",), **fields)


def rows_of(kind, examples, *, max_length=16, **fields):
    return KINDS[kind].encode(
        spec_of(kind, **fields), examples, encoder(max_length), TaskConfig()).rows


def test_texts_and_pairs():
    labels = ("no", "yes")
    rows = rows_of("classification", [TextExample(key="1", texts=("A cd.",), label="yes"),
                                      TextExample(key="3", texts=("",))], labels=labels)
    assert rows[0].ids.tolist() == [CLS, A, C, D, DOT, SEP]
    assert rows[0].segment_ids.tolist() == [0] * 6
    assert rows[1].ids.tolist() == [CLS, SEP]
    assert [int(row.targets["label"]) for row in rows] == [1, 0]
    assert rows[0].ids.dtype == rows[0].segment_ids.dtype == np.int32
    rows = rows_of("classification", [TextExample(key="2", texts=("a", "b c"), label="no"),
                                      TextExample(key="3", texts=("", "zz"))], labels=labels)
    assert rows[0].ids.tolist() == [CLS, A, SEP, B, C, SEP]
    assert rows[0].segment_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert rows[1].ids.tolist() == [CLS, SEP, UNK, SEP]
    # Long pairs lose the longer text's tokens.
    (row,) = rows_of("regression", [TextExample(
        key="1", texts=("a a a a a a", "b b"), label=3.8)], max_length=8)
    assert row.ids.tolist() == [CLS, A, A, A, SEP, B, B, SEP]


def test_numbers_keep_the_digits_that_float32_lacks():
    times = [1.7e9 + seconds for seconds in (0, 4, 10)]  # float32 has multiples of 128 here.
    fields = {"scale": 5.0, "offset": 1.7e9 + 5}
    rows = rows_of("regression", [
        TextExample(key="1", texts=("a",), label=time) for time in (*times, None)], **fields)
    targets = [row.targets["label"] for row in rows]
    np.testing.assert_allclose(targets, [-1.0, -0.2, 1.0, 0.0], rtol=1e-6)
    records, numbers = KINDS["regression"].predictions(spec_of("regression", **fields), [
        {"predictions": target} for target in targets[:3]])
    np.testing.assert_allclose(numbers, times, rtol=0, atol=1e-5)
    assert [record["prediction"] for record in records] == [*numbers]


def text(*texts):
    return TextExample(key="1", texts=texts, label=1.0)


def words(*of_sentence):
    return TaggedExample(key="1", words=of_sentence)


def question(query):
    return QuestionExample(key=query, question=query, context="a b c " * 9)


LONG = "are longer than --max_seq_length=8 tokens and were cut"


@pytest.mark.parametrize(("kind", "examples", "note"), [
    # [CLS], 6 pieces and [SEP] are 8.
    ("regression", [text("a a a a cd"), text("")], None),
    ("regression", [text("a a a a a cd"), text("a")], f"1 of 2 rows {LONG} (longest: 9)"),
    ("regression", [text("a " * 300)] * 3 + [text("a." * 5)], f"4 of 4 rows {LONG} (longest: 302)"),
    ("regression", [text("a\u200b \u200b b c a b c")], None),  # A zero-width space is dropped.
    ("regression", [text("a a", "b b b")], None),  # [CLS] 2 [SEP] 3 [SEP] are 8.
    ("regression", [text("a a a", "b b b"), text("", "")], f"1 of 2 rows {LONG} (longest: 9)"),
    ("regression", [text("", "cd " * 9)], f"1 of 1 rows {LONG} (longest: 21)"),
    # A sentence continues in the next row, but a word of more pieces than a row has is cut.
    ("tagging", [words(*"abcabcabcabc")], None), ("tagging", [words("cddddd", "a")], None),
    ("tagging", [words("cdddddd", "a"), words("b")],
     f"1 of 3 words with [CLS] and [SEP] {LONG} (longest: 9)"),
    ("question_answering", [question("a b c"), question("")], None),
    ("question_answering", [question("a b c cd"), question("a b c"), question("cd cd")],
     "2 of 3 questions are longer than task.max_query_length=3 tokens and were cut (longest: 5)")])
def test_texts_that_are_cut_are_counted(kind, examples, note):
    labels = ("O",) if kind == "tagging" else ()
    spec = TaskSpec(name=kind, kind=kind, labels=labels, metrics=("accuracy",))
    split = KINDS[spec.kind].encode(spec, examples, encoder(8), TaskConfig(max_query_length=3))
    assert list(split.notes) == ([] if note is None else [note])


def test_words_are_tagged_at_their_first_pieces():
    example = TaggedExample(key="1", words=("a", "cd", "\u200b", "b"), tags=("O", "X", "X", "O"))
    (row,) = rows_of("tagging", [example], labels=("O", "X"))
    assert row.ids.tolist() == [CLS, A, C, D, UNK, B, SEP]
    assert row.word_targets["first_piece"].tolist() == [1, 2, 4, 5]
    assert row.word_targets["tag"].tolist() == [0, 1, 1, 0]
    assert row.segment_ids.tolist() == [0] * 7


def test_a_long_sentence_becomes_rows_that_hold_every_word_once(monkeypatch):
    examples = [TaggedExample(key="1", words=("b",)),
                TaggedExample(key="2", words=("a", "cd", "cd", "b", "a")),
                TaggedExample(key="3", words=("a",))]
    for chunk in (100, 2):  # Sentences of a call.
        monkeypatch.setattr(tagging, "CHUNK", chunk)
        rows = rows_of("tagging", examples, labels=("O",), max_length=5)
        assert [row.ids.tolist() for row in rows] == [
            [CLS, B, SEP], [CLS, A, C, D, SEP], [CLS, C, D, B, SEP], [CLS, A, SEP], [CLS, A, SEP]]
        assert [row.word_targets["first_piece"].tolist() for row in rows] == [
            [1], [1, 2], [1, 3], [1], [1]]


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_the_dropout_of_every_part_is_its_own_on_all_devices_and_in_all_micro_batches(rounds):
    """Splits 16 examples with 3 parts into two shares of 8, each computed in `rounds`."""
    def keys(examples, first, stride):
        ids = tf.zeros([examples, 3, 4], tf.int32)
        _, rng = base.as_rows(RowBatch(ids, ids, ids > 0, (), {}),
                              dataclasses.replace(rng_at(first_example=first), stride=stride))
        return dropout_keys(rng, "stream", 3 * examples).numpy().reshape([examples, 3, 2])

    expected = keys(16, 0, 1)
    assert len(np.unique(expected.reshape([48, 2]), axis=0)) == 48
    for first in itertools.product((0, 8), range(rounds)):
        np.testing.assert_array_equal(keys(8 // rounds, sum(first), rounds),
                                      expected[sum(first):][:8 - first[1]:rounds])
