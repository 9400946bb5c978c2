"""A text's words fill its rows one after the other, whatever texts stand beside it."""

import numpy as np
import tensorflow as tf

from electra_tf.tasks.word_rows import row_starts

in_graph = tf.function(row_starts, autograph=False, input_signature=[
    tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)])


def greedy(sizes, room):
    """Takes one word at a time."""
    starts, total = [], room
    for number, size in enumerate(sizes):
        if total + size > room:
            starts.append(number)
            total = 0
        total += size
    return starts


def found(texts, room):
    """Returns the first words of every text's rows, numbered within the text."""
    splits = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    sizes = np.concatenate([np.zeros(0, np.int32), *texts]).astype(np.int32)
    starts = in_graph(tf.constant(sizes), tf.constant(splits), tf.constant(room)).numpy()
    return [(starts[(starts >= first) & (starts < last)] - first).tolist()
            for first, last in zip(splits[:-1], splits[1:], strict=True)]


def test_every_row_takes_the_words_that_fit():
    draw = np.random.default_rng(1)
    for room in (1, 2, 6, 30):
        texts = [draw.integers(1, room + 1, draw.integers(0, 50)) for _ in range(1000)]
        assert found(texts, room) == [greedy(sizes, room) for sizes in texts]


def test_a_text_has_the_rows_that_it_has_alone():
    draw = np.random.default_rng(2)
    texts = [draw.integers(1, 7, size) for size in (40, 0, 1, 300, 7)]
    assert found(texts, 6) == [found([sizes], 6)[0] for sizes in texts]


def test_no_words_have_no_rows():
    assert found([], 6) == []
    assert found([[], []], 6) == [[], []]
