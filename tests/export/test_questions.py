"""Answers found inside a graph are those of fine-tuning."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.task_heads import SpanBeams
from electra_tf.tasks.examples import QuestionExample
from electra_tf.tasks.kinds import answers
from electra_tf.tasks.kinds import questions as kind
from electra_tf.text.rows import RowEncoder
from tests.export.served_models import TEXT

PAIRS = [
    ("Who?", "The Cafés\nwon, in (1999)."),
    ("Who won in the cafe?", "a b (a) " * 9),
    ("", "who"),
    ("Who?", ""),
    ("won", "Ünïcödé, the cafés won 世界 in 1999. " * 3),
]


def both(max_length, stride):
    examples = [QuestionExample(key=str(number), question=question, context=context, answers=())
                for number, (question, context) in enumerate(PAIRS)]
    encoder = RowEncoder(TEXT, max_length)
    expected = kind.encode(examples, encoder, stride=stride, max_query=4)
    asked, contexts = (tf.constant(column) for column in zip(*PAIRS, strict=True))
    found = kind.read_windows(encoder, asked, contexts, tf.range(len(PAIRS)), stride=stride,
                              max_query=4)
    return examples, expected, contexts, *found


@pytest.mark.parametrize(("max_length", "stride"), [(12, 3), (12, 30), (64, 8)])
def test_answers_are_fine_tunings(max_length, stride):
    encoded = both(max_length, stride)
    for seed in range(6):
        compare(*encoded, np.random.default_rng(seed))


def compare(examples, expected, contexts, tokens, windows, pieces, draw):
    count, length = tokens.ids.shape
    size = 4
    beams = SpanBeams(
        draw.normal(-2.0, 1.0, [count, size]).astype(np.float32),
        draw.integers(0, length, [count, size]).astype(np.int32),
        draw.normal(-2.0, 1.0, [count, size, size]).astype(np.float32),
        draw.integers(0, length, [count, size, size]).astype(np.int32),
        draw.normal(0.0, 1.0, [count]).astype(np.float32))
    found = answers.graph_answers(contexts, windows, pieces, SpanBeams(*map(tf.constant, beams)),
                              max_pieces=5)
    best = answers.best_answers(
        examples, expected, [{name: part[row] for name, part in beams._asdict().items()}
                             for row in range(count)], max_pieces=5, count=1)
    logits = answers.no_answer_scores(expected, beams.impossible)
    np.testing.assert_allclose(found.impossible, logits)
    for line, (_, context) in enumerate(PAIRS):
        text, start, end = (part[line].numpy() for part in found[:3])
        if not best[line]:
            assert (text, start, end, found.score[line]) == (b"", 0, 0, 0.0)
            continue
        assert text.decode() == best[line][0].text == context[start:end]
        assert start == best[line][0].start
        assert float(found.score[line]) == pytest.approx(
            np.exp(best[line][0].log_probability), rel=1e-4)


def test_chunks_change_nothing(monkeypatch):
    _, _, _, read, _, _ = both(12, 3)

    def compute(tokens):
        ids = tf.cast(tokens.ids[:, :3], tf.float32)
        return SpanBeams(ids, tokens.ids[:, 1:4], ids[:, :, tf.newaxis] + ids[:, tf.newaxis],
                         tf.tile(tokens.ids[:, :3, tf.newaxis], [1, 1, 3]), ids[:, 2])

    whole = compute(read)
    for size in (1, 4, 1000):
        monkeypatch.setattr(kind, "SERVED_CHUNK", size)
        for one, other in zip(kind.in_chunks(compute, read), whole, strict=True):
            np.testing.assert_array_equal(one, other)
