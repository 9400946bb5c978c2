"""Rows made inside a graph are the rows that training makes."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.export.texts import Texts, shortened
from electra_tf.tasks import encoding
from electra_tf.tasks.encoding import ExampleEncoder
from electra_tf.tasks.examples import TextExample
from tests.export.served_models import TOKENIZER, VOCABULARY

TEXTS = ["The cafés won.", "", "a b " * 20, "Who won in (1999)?", "xyz \x00 \ufffd"]


def expected(columns, max_length):
    return ExampleEncoder(TOKENIZER, VOCABULARY, max_length).texts(
        [TextExample(key=str(number), texts=texts)
         for number, texts in enumerate(zip(*columns, strict=True))])


@pytest.mark.parametrize("max_length", [8, 32])
@pytest.mark.parametrize("columns", [[TEXTS], [TEXTS, TEXTS[::-1]], [TEXTS[2:3], TEXTS[2:3]]])
def test_texts_and_pairs_are_trainings_rows(columns, max_length):
    tokens = Texts(TOKENIZER, VOCABULARY, max_length).encode(*map(tf.constant, columns))
    rows = expected(columns, max_length)
    assert tokens.ids.shape[1] == max(len(row.ids) for row in rows)
    for line, row in enumerate(rows):
        size = len(row.ids)
        np.testing.assert_array_equal(tokens.ids[line, :size], row.ids)
        np.testing.assert_array_equal(tokens.segment_ids[line, :size], row.segment_ids)
        assert tokens.valid[line].numpy().tolist() == [
            column < size for column in range(tokens.ids.shape[1])]
        assert np.all(tokens.ids[line, size:] == VOCABULARY.pad_id)


def test_pairs_are_shortened_as_in_training():
    sizes = [(first, second) for first in range(9) for second in range(9)]
    for limit in (1, 4, 7, 20):
        found = shortened([tf.constant(column) for column in zip(*sizes, strict=True)], limit)
        assert list(zip(*(part.numpy().tolist() for part in found), strict=True)) == [
            tuple(encoding.shortened(pair, limit)) for pair in sizes]


def test_no_text_makes_no_row():
    tokens = Texts(TOKENIZER, VOCABULARY, 8).encode(tf.constant([], tf.string))
    assert tokens.ids.shape == (0, 1)
