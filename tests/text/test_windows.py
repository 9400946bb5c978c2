"""Windows cover their contexts, and each piece is best seen by exactly one of them."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.text import windows
from electra_tf.text.rows import RowEncoder
from tests.support.few_words import TEXT, VOCABULARY

CLS, SEP = VOCABULARY.cls_id, VOCABULARY.sep_id


def covering(pieces, room, stride):
    """First and one past the last piece of every window."""
    spans = [(0, min(room, pieces))]
    while spans[-1][1] < pieces:
        first = spans[-1][0] + min(stride, room)
        spans.append((first, min(first + room, pieces)))
    return spans


def best_window(spans, piece):
    """The window that shows most on a piece's poorer side; the longer, then the earlier one."""
    inside = [(min(piece - first, end - 1 - piece), end - first, -number)
              for number, (first, end) in enumerate(spans) if first <= piece < end]
    return -max(inside)[2]


def encode(queries, contexts, context_of, max_length, stride):
    return windows.encode(
        RowEncoder(TEXT, max_length), tf.ragged.constant(queries, tf.int32),
        tf.ragged.constant(contexts, tf.int32), tf.constant(context_of), stride=stride)


@pytest.mark.parametrize("seed", range(4))
def test_windows_are_those_made_one_by_one(seed):
    draw = np.random.default_rng(seed)
    contexts = [draw.integers(5, 19, size).tolist() for size in (0, 1, 9, 33, 60)]
    queries = [draw.integers(5, 19, size).tolist() for size in (0, 3, 2, 4, 1, 2, 3)]
    context_of = [3, 3, 0, 4, 1, 2, 4]  # Some questions share a context.
    max_length, stride = 16, int(draw.choice([1, 4, 50]))
    tokens, parts = encode(queries, contexts, context_of, max_length, stride)
    line = piece = 0
    for number, (query, chosen) in enumerate(zip(queries, context_of, strict=True)):
        context = contexts[chosen]
        spans = covering(len(context), max_length - 3 - len(query), stride)
        for window, (first, end) in enumerate(spans):
            ids = [CLS, *query, SEP, *context[first:end], SEP]
            assert tokens.ids[line, :len(ids)].numpy().tolist() == ids
            assert int(tf.reduce_sum(tf.cast(tokens.valid[line], tf.int32))) == len(ids)
            assert tokens.segment_ids[line, :len(ids)].numpy().tolist() == (
                [0] * (len(query) + 2) + [1] * (end - first + 1))
            assert [int(part[line]) for part in (
                parts.example, parts.first, parts.sizes, parts.position)] == [
                number, first, end - first, len(query) + 2]
            assert parts.is_best[piece:piece + end - first].numpy().tolist() == [
                best_window(spans, index) == window for index in range(first, end)]
            line, piece = line + 1, piece + end - first
    assert line == len(parts.example)
