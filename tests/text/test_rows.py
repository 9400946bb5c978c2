"""Texts and pairs become rows as the reference makes them, one token at a time."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text import rows
from electra_tf.text.rows import RowEncoder, cut_notes, encode_texts, shortened
from electra_tf.text.tokenizer import Tokenizer
from tests.support.few_words import TEXT, VOCABULARY

TOKENIZER = Tokenizer(TEXT)
CLS, SEP, PAD = VOCABULARY.cls_id, VOCABULARY.sep_id, VOCABULARY.pad_id
TEXTS = ["The cafés won.", "", "a b " * 20, "Who won in (1999)?", "xyz \x00 \ufffd"]


def one_token_at_a_time(lengths, limit):
    """What the reference does: the longer text loses its last token, the second if equal."""
    kept = list(lengths)
    while sum(kept) > limit:
        kept[0 if len(kept) == 1 or kept[0] > kept[1] else 1] -= 1
    return kept


def by_hand(texts, max_length):
    """Returns ids and segments of one row."""
    pieces = [TOKENIZER.tokenize(tf.constant([text])).to_list()[0] for text in texts]
    kept = one_token_at_a_time(map(len, pieces), max_length - 1 - len(texts))
    ids, segments = [CLS], [0]
    for number, (part, size) in enumerate(zip(pieces, kept, strict=True)):
        ids += [*part[:size], SEP]
        segments += [number] * (size + 1)
    return ids, segments


@pytest.mark.parametrize("max_length", [8, 32])
@pytest.mark.parametrize("columns", [[TEXTS], [TEXTS, TEXTS[::-1]], [TEXTS[2:3], TEXTS[2:3]]])
def test_texts_and_pairs(columns, max_length):
    tokens = RowEncoder(TEXT, max_length).encode(*map(tf.constant, columns))
    expected = [by_hand(texts, max_length) for texts in zip(*columns, strict=True)]
    assert tokens.ids.shape[1] == max(len(ids) for ids, _ in expected)
    for line, (ids, segments) in enumerate(expected):
        size = len(ids)
        np.testing.assert_array_equal(tokens.ids[line, :size], ids)
        np.testing.assert_array_equal(tokens.segment_ids[line, :size], segments)
        assert tokens.valid[line].numpy().tolist() == [
            column < size for column in range(tokens.ids.shape[1])]
        assert np.all(tokens.ids[line, size:] == PAD)


@pytest.mark.parametrize("columns", [[TEXTS], [TEXTS, TEXTS[::-1]]])
def test_lengths_are_those_of_rows_that_are_not_cut(monkeypatch, columns):
    monkeypatch.setattr(rows, "CHUNK", 2)
    texts = list(zip(*columns, strict=True))
    token_rows, lengths = encode_texts(texts, RowEncoder(TEXT, 8))
    assert lengths.tolist() == [len(by_hand(part, 1000)[0]) for part in texts]
    assert [len(row.ids) for row in token_rows] == [
        len(by_hand(part, 8)[0]) for part in texts]


@pytest.mark.parametrize(("lengths", "note"), [
    ([], []), ([8], []), ([9], ["1 of 1 rows are longer than --flag=8 tokens and were cut "
                                "(longest: 9)"]),
    ([8, 302, 9] + [3] * 997, ["2 of 1,000 rows are longer than --flag=8 tokens and were cut "
                               "(longest: 302)"])])
def test_rows_over_the_limit_are_counted(lengths, note):
    assert cut_notes(lengths, 8, "--flag") == note


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 9])
def test_shortening_is_what_taking_one_token_at_a_time_gives(limit):
    sizes = [(first, second) for first in range(9) for second in range(9)]
    kept = shortened([tf.constant(column) for column in zip(*sizes, strict=True)], limit)
    assert list(zip(*(part.numpy().tolist() for part in kept), strict=True)) == [
        tuple(one_token_at_a_time(pair, limit)) for pair in sizes]
