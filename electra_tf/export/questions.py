"""Questions and answers inside a graph."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from electra_tf.export import chunks
from electra_tf.modeling.task_heads import SpanBeams
from electra_tf.text import windows
from electra_tf.text.rows import RowEncoder, Tokens
from electra_tf.text.tokenizer import Pieces
from electra_tf.text.windows import Windows

CHUNK = 8
"""Windows that are computed together: the head's memory grows with L times the beam for each."""

Compute = Callable[[Tokens], SpanBeams]
_OUTPUTS = SpanBeams(
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None, None], tf.float32), tf.TensorSpec([None, None, None], tf.int32),
    tf.TensorSpec([None], tf.float32))
_NEVER = -1e30
"""Log probability of a span that isn't allowed."""


class Answers(NamedTuple):
    """What is found, [B] each."""

    text: tf.Tensor
    """string; empty where no span is allowed."""
    start: tf.Tensor
    """int32: first character in the context."""
    end: tf.Tensor
    """int32: one past the last."""
    score: tf.Tensor
    """float32: probability of start and end within their window."""
    impossible: tf.Tensor
    """float32: smallest logit of "no answer" over the windows."""


def encode(encoder: RowEncoder, questions: tf.Tensor, contexts: tf.Tensor, *, stride: int,
           max_query: int) -> tuple[Tokens, Windows, Pieces]:
    """Returns rows and windows of questions, string [B], and the pieces of contexts, string [B]."""
    pieces = encoder.tokenizer.tokenize_with_words(contexts)
    queries = encoder.tokenizer.tokenize(questions)[:, :max_query]
    numbers = tf.range(tf.size(contexts))
    return *windows.encode(encoder, queries, pieces.ids, numbers, stride=stride), pieces


def beams_of(compute: Compute, tokens: Tokens) -> SpanBeams:
    """Calls a function on a few rows at a time, however many there are; all fields are needed."""
    return chunks.in_chunks(lambda *part: compute(Tokens(*part)), tokens, tf.constant(CHUNK),
                            _OUTPUTS)


def answers(contexts: tf.Tensor, parts: Windows, pieces: Pieces, beams: SpanBeams, *,
            max_pieces: int) -> Answers:
    """Returns the likeliest answer to every question.

    Args:
        contexts: string [B].
        parts: of them.
        pieces: of them.
        beams: of the windows.
        max_pieces: longest answer.
    """
    scores, first, last = _best_spans(parts, beams, max_pieces)
    count = tf.size(contexts)
    best = tf.math.unsorted_segment_max(scores, parts.example, count)
    numbers = tf.range(tf.size(scores))
    is_best = scores == tf.gather(best, parts.example)
    window = tf.math.unsorted_segment_min(
        tf.where(is_best, numbers, tf.size(scores)), parts.example, count)
    window = tf.minimum(window, tf.maximum(tf.size(scores) - 1, 0))
    found = best > _NEVER
    before = tf.cast(pieces.ids.row_starts(), tf.int32)

    def of_piece(values: tf.RaggedTensor, piece: tf.Tensor) -> tf.Tensor:
        # A context without pieces has none to look up; zero stands for it.
        flat = tf.concat([tf.cast(values.flat_values, tf.int32), [0]], axis=0)
        place = before + tf.gather(piece, window)
        return tf.gather(flat, tf.where(found, place, tf.size(flat) - 1))

    start, end = of_piece(pieces.starts, first), of_piece(pieces.ends, last)
    text = tf.strings.unicode_transcode(contexts, "UTF-8", "UTF-8", errors="ignore")

    def characters(bytes_before: tf.Tensor) -> tf.Tensor:
        zeros = tf.zeros_like(bytes_before)
        return tf.strings.length(tf.strings.substr(text, zeros, bytes_before), unit="UTF8_CHAR")

    impossible = tf.math.unsorted_segment_min(beams.impossible, parts.example, count)
    return Answers(tf.strings.substr(text, start, end - start), characters(start),
                   characters(end), tf.where(found, tf.exp(best), 0.0), impossible)


def _best_spans(parts: Windows, beams: SpanBeams,
                max_pieces: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns log probability, first and last piece of every window's best span, [W] each."""
    spans = windows.spans(parts, beams.start_index, beams.end_index, most_pieces=max_pieces)
    scores = tf.where(
        spans.allowed, beams.start_log_probs[:, :, tf.newaxis] + beams.end_log_probs, _NEVER)
    width = tf.shape(scores)[1]
    flat = tf.reshape(scores, [-1, width * width])
    choice = tf.argmax(flat, axis=1, output_type=tf.int32)

    def chosen(values: tf.Tensor) -> tf.Tensor:
        wide = tf.broadcast_to(values, tf.shape(scores))
        return tf.gather(tf.reshape(wide, [-1, width * width]), choice, batch_dims=1)

    return chosen(scores), chosen(spans.first), chosen(spans.last)
