"""Answers that a graph decodes are those of fine-tuning."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.modeling.task_heads import SpanBeams
from electra_tf.tasks.kinds import answers, questions
from electra_tf.tasks.task import QuestionExample
from electra_tf.text.rows import RowEncoder
from tests.support.served_models import TEXT

PAIRS = [
    ("Who?", "The Cafés\nwon, in (1999)."),
    ("Who won in the cafe?", "a b (a) " * 9),
    ("", "who"),
    ("Who?", ""),
    ("won", "Ünïcödé, the cafés won 世界 in 1999. " * 3),
]


@pytest.mark.parametrize(("max_length", "stride"), [(12, 3), (64, 8)])
def test_answers_are_the_likeliest_spans_of_fine_tunings_windows(max_length, stride):
    examples = [QuestionExample(key=str(number), question=question, context=context)
                for number, (question, context) in enumerate(PAIRS)]
    encoder = RowEncoder(TEXT, max_length)
    config = TaskConfig(doc_stride=stride, max_query_length=4)
    expected = questions.encode(examples, encoder, config)
    expected = expected._replace(
        windows=type(expected.windows)(*(part.numpy() for part in expected.windows)))
    question_texts, contexts = (tf.constant(column) for column in zip(*PAIRS, strict=True))
    numbers = tf.range(len(PAIRS))
    tokens, windows, pieces, _ = questions.read_windows(
        encoder, question_texts, contexts, numbers, config)
    contexts = answers.Contexts(contexts, pieces.starts, pieces.ends, numbers)
    draw, (count, length), size = np.random.default_rng(1), tokens.ids.shape, 4
    for _ in range(6):
        compare(expected, windows, contexts, SpanBeams(
            draw.normal(-2.0, 1.0, [count, size]).astype(np.float32),
            draw.integers(0, length, [count, size]).astype(np.int32),
            draw.normal(-2.0, 1.0, [count, size, size]).astype(np.float32),
            draw.integers(0, length, [count, size, size]).astype(np.int32),
            draw.normal(0.0, 1.0, [count]).astype(np.float32)))


def compare(expected, windows, contexts, beams):
    best = answers.best_answers(contexts, windows, beams, max_pieces=5)
    for line, (_, context) in enumerate(PAIRS):
        rows = np.flatnonzero(expected.windows.example == line)
        assert best.impossible[line] == beams.impossible[rows].min()
        score, (first, last) = likeliest(expected.windows, beams, rows)
        text, start, end = (part[line].numpy() for part in best[:3])
        if first is None:
            assert (text, start, end, best.score[line]) == (b"", 0, 0, 0.0)
            continue
        own = expected.contexts.of_question[line]
        begin, past = (int(part[own][piece]) for part, piece in (
            (expected.contexts.starts, first), (expected.contexts.ends, last)))
        assert text == context.encode()[begin:past] and text.decode() == context[start:end]
        assert float(best.score[line]) == pytest.approx(np.exp(score), rel=1e-4)


def likeliest(windows, beams, rows):
    """Searches all spans of some windows; returns log probability, first and last piece."""
    best = -np.inf, (None, None)
    offsets = np.cumsum([0, *windows.sizes])
    for row in rows:
        for rank, start in enumerate(beams.start_index[row] - windows.position[row]):
            for other, end in enumerate(beams.end_index[row, rank] - windows.position[row]):
                score = beams.start_log_probs[row, rank] + beams.end_log_probs[row, rank, other]
                if (0 <= start <= end < windows.sizes[row] and end - start < 5 and score > best[0]
                        and windows.is_best[offsets[row] + start]):
                    best = score, (windows.first[row] + start, windows.first[row] + end)
    return best
