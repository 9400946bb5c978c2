"""Questions and answers inside a graph, as `tasks/answers.py` has them outside of one."""

from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from electra_tf.export import chunks
from electra_tf.export.texts import Texts, Tokens, head
from electra_tf.modeling.task_heads import SpanBeams

CHUNK = 8
"""Windows that are computed together: the head's memory grows with L times the beam for each."""

Compute = Callable[[Tokens], SpanBeams]
_OUTPUTS = SpanBeams(
    tf.TensorSpec([None, None], tf.float32), tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None, None, None], tf.float32), tf.TensorSpec([None, None, None], tf.int32),
    tf.TensorSpec([None], tf.float32))
_NEVER = -1e30
"""Log probability of a span that isn't allowed."""


class Windows(NamedTuple):
    """Parts of the contexts of B questions, W rows."""

    tokens: Tokens
    example: tf.Tensor
    """int32 [W]: which question's."""
    first: tf.Tensor
    """int32 [W]: the part's first piece, among the pieces of all contexts."""
    sizes: tf.Tensor
    """int32 [W]: its pieces."""
    position: tf.Tensor
    """int32 [W]: column of that piece."""
    starts: tf.Tensor
    """int32 [pieces]: where the word of every piece of all contexts begins, in bytes."""
    ends: tf.Tensor
    """int32 [pieces]: one past its end."""


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


def encode(texts: Texts, questions: tf.Tensor, contexts: tf.Tensor, *, stride: int,
           max_query: int) -> Windows:
    """Encodes string [B] each as [CLS] question [SEP] part of the context [SEP]."""
    queries = texts.tokenizer.tokenize(questions)[:, :max_query]
    pieces = texts.tokenizer.tokenize_with_words(contexts)
    query_sizes = tf.cast(queries.row_lengths(), tf.int32)
    lengths = tf.cast(pieces.ids.row_lengths(), tf.int32)
    room = texts.max_length - 3 - query_sizes
    step = tf.minimum(stride, room)
    counts = 1 + -(-tf.maximum(lengths - room, 0) // step)
    numbers = tf.ragged.range(counts)
    example = tf.cast(numbers.value_rowids(), tf.int32)

    def of_example(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, example)

    begin = numbers.flat_values * of_example(step)
    sizes = tf.minimum(of_example(room), of_example(lengths) - begin)
    first = of_example(tf.cast(pieces.ids.row_starts(), tf.int32)) + begin
    parts = tf.gather(pieces.ids.flat_values, tf.ragged.range(first, first + sizes))
    asked = tf.gather(head(queries, query_sizes), example)
    return Windows(
        texts.rows([asked, parts]), example, first, sizes, 2 + of_example(query_sizes),
        tf.cast(pieces.starts.flat_values, tf.int32), tf.cast(pieces.ends.flat_values, tf.int32))


def beams_of(compute: Compute, tokens: Tokens) -> SpanBeams:
    """Calls a function on a few rows at a time, however many there are; all fields are needed."""
    return chunks.in_chunks(lambda *part: compute(Tokens(*part)), tokens, tf.constant(CHUNK),
                            _OUTPUTS)


def answers(contexts: tf.Tensor, windows: Windows, beams: SpanBeams, *,
            max_pieces: int) -> Answers:
    """Returns the likeliest answer to every question: `answers.best_answers` with one each.

    Args:
        contexts: string [B].
        windows: of them.
        beams: of the windows.
        max_pieces: longest answer.
    """
    scores, first, last = _best_spans(windows, beams, max_pieces)
    count = tf.size(contexts)
    best = tf.math.unsorted_segment_max(scores, windows.example, count)
    numbers = tf.range(tf.size(scores))
    is_best = scores == tf.gather(best, windows.example)
    window = tf.math.unsorted_segment_min(
        tf.where(is_best, numbers, tf.size(scores)), windows.example, count)
    window = tf.minimum(window, tf.maximum(tf.size(scores) - 1, 0))
    found = best > _NEVER

    def of_piece(values: tf.Tensor, piece: tf.Tensor) -> tf.Tensor:
        # A context without pieces has none to look up; zero stands for it.
        values = tf.concat([values, [0]], axis=0)
        return tf.gather(values, tf.where(found, tf.gather(piece, window), tf.size(values) - 1))

    start, end = of_piece(windows.starts, first), of_piece(windows.ends, last)
    text = tf.strings.unicode_transcode(contexts, "UTF-8", "UTF-8", errors="ignore")

    def characters(bytes_before: tf.Tensor) -> tf.Tensor:
        zeros = tf.zeros_like(bytes_before)
        return tf.strings.length(tf.strings.substr(text, zeros, bytes_before), unit="UTF8_CHAR")

    impossible = tf.math.unsorted_segment_min(beams.impossible, windows.example, count)
    return Answers(tf.strings.substr(text, start, end - start), characters(start),
                   characters(end), tf.where(found, tf.exp(best), 0.0), impossible)


def _best_spans(windows: Windows, beams: SpanBeams,
                max_pieces: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns log probability, first and last piece of every window's best span, [W] each."""
    first = beams.start_index - windows.position[:, tf.newaxis]
    last = beams.end_index - windows.position[:, tf.newaxis, tf.newaxis]
    sizes = windows.sizes[:, tf.newaxis]
    offsets = tf.cumsum(windows.sizes, exclusive=True)[:, tf.newaxis]
    is_best = tf.concat([_is_best(windows), [False]], axis=0)
    place = offsets + tf.clip_by_value(first, 0, tf.maximum(sizes - 1, 0))
    starts_here = (first >= 0) & (first < sizes) & tf.gather(is_best, place)
    wide = first[:, :, tf.newaxis]
    allowed = (starts_here[:, :, tf.newaxis] & (last >= wide)
               & (last < sizes[:, :, tf.newaxis]) & (last - wide < max_pieces))
    scores = tf.where(
        allowed, beams.start_log_probs[:, :, tf.newaxis] + beams.end_log_probs, _NEVER)
    width = tf.shape(scores)[1]
    flat = tf.reshape(scores, [-1, width * width])
    choice = tf.argmax(flat, axis=1, output_type=tf.int32)

    def chosen(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.reshape(values, [-1, width * width]), choice, batch_dims=1)

    starts = chosen(tf.broadcast_to(wide, tf.shape(scores)))
    return chosen(scores), windows.first + starts, windows.first + chosen(last)


def _is_best(windows: Windows) -> tf.Tensor:
    """Tells of every piece of every window whether no other shows it with more context.

    As `answers.best_windows`: more on the poorer side, then the longer, then the earlier window.
    """
    sizes = windows.sizes
    columns = tf.ragged.range(sizes)
    number = tf.cast(columns.value_rowids(), tf.int32)
    column, size = columns.flat_values, tf.gather(sizes, number)
    piece = tf.gather(windows.first, number) + column
    # In hundredths, so that ties are ties.
    context = 100 * tf.minimum(column, size - 1 - column) + size
    pieces = tf.size(windows.starts)
    most = tf.math.unsorted_segment_max(context, piece, pieces)
    candidates = tf.where(context == tf.gather(most, piece), number, tf.size(sizes))
    return candidates == tf.gather(
        tf.math.unsorted_segment_min(candidates, piece, pieces), piece)
