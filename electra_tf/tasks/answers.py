"""Questions as windows over their contexts, and answers from what the network says of them.

A context that doesn't fit is read through several windows, `stride` pieces apart (BERT, section
4.2). Every piece knows the characters of its word, so that an answer is cut out of the context as
it was written.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.input.buckets import Row
from electra_tf.tasks.encoding import ExampleEncoder
from electra_tf.tasks.examples import QuestionExample
from electra_tf.text.tokenizer import Tokenizer
from electra_tf.text.vocabulary import Vocabulary

NO_ANSWER = 0
"""Position of [CLS], where questions without an answer start and end."""


@dataclasses.dataclass(frozen=True)
class Context:
    """A context in word pieces."""

    ids: np.ndarray
    """int32 [n]."""
    starts: np.ndarray
    """int64 [n]: first character of the piece's word."""
    ends: np.ndarray
    """int64 [n]: one past its last character."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Window:
    """Where a row's context comes from."""

    example: int
    """Index of the example."""
    first: int
    """Index of the window's first piece in the context."""
    position: int
    """Of that piece in the row."""
    is_best: np.ndarray
    """bool [n]: no other window shows more on both sides of the piece."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions:
    """Encoded questions: rows, and how to get back from them."""

    rows: list[Row]
    """With the targets "start" and "end", int32 positions in the row, 0 where the window holds no
    answer, and "impossible", 1.0 there (or where the question has none) and 0.0 elsewhere."""
    windows: list[Window]
    """One per row."""
    contexts: list[Context]
    """One per example."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """A candidate answer."""

    text: str
    start: int
    """First character in the context."""
    log_probability: float
    """Of start and end together, within its window."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Beams:
    """What the network says of one row: K starts and for each K ends, as in `SpanBeams`."""

    start_log_probs: np.ndarray
    """[K]."""
    start_index: np.ndarray
    """[K]."""
    end_log_probs: np.ndarray
    """[K, K]."""
    end_index: np.ndarray
    """[K, K]."""


def encode_questions(examples: Sequence[QuestionExample], tokenizer: Tokenizer,
                     vocabulary: Vocabulary, *, max_length: int, stride: int,
                     max_query: int, by_window: bool = True) -> Questions:
    """Encodes questions as [CLS] question [SEP] part of the context [SEP].

    Args:
        examples: the first answer of each is what training aims at.
        tokenizer: of the encoder.
        vocabulary: its vocabulary.
        max_length: tokens of a row.
        stride: pieces from one window's beginning to the next's.
        max_query: pieces kept of a question.
        by_window: a window without the answer is "impossible"; else its question decides.
    """
    queries = ExampleEncoder(tokenizer, vocabulary, max_length).pieces(
        [example.question for example in examples])
    contexts = tokenize_contexts([example.context for example in examples], tokenizer)
    rows: list[Row] = []
    places: list[Window] = []
    for number, (example, query, context) in enumerate(
            zip(examples, queries, contexts, strict=True)):
        query = query[:max_query]
        room = max_length - len(query) - 3
        spans = window_spans(len(context.ids), room, stride)
        answer = None if not example.answers else piece_span(
            context, example.answers[0].start,
            example.answers[0].start + len(example.answers[0].text))
        for (first, end), is_best in zip(spans, best_windows(spans), strict=True):
            position = len(query) + 2
            ids = np.concatenate([[vocabulary.cls_id], query, [vocabulary.sep_id],
                                  context.ids[first:end], [vocabulary.sep_id]]).astype(np.int32)
            segments = (np.arange(len(ids)) >= position).astype(np.int32)
            inside = answer is not None and first <= answer[0] and answer[1] < end
            start, last = ((piece - first + position for piece in answer) if inside
                           else (NO_ANSWER, NO_ANSWER))
            rows.append(Row(ids, segments, {
                "start": np.int32(start), "end": np.int32(last),
                "impossible": np.float32(not inside if by_window else example.is_impossible)}))
            places.append(Window(example=number, first=first, position=position, is_best=is_best))
    return Questions(rows=rows, windows=places, contexts=contexts)


def tokenize_contexts(texts: Sequence[str], tokenizer: Tokenizer) -> list[Context]:
    """Tokenizes contexts, each of which may occur many times; offsets count characters."""
    distinct = list(dict.fromkeys(texts))
    pieces = tokenizer.tokenize_with_words(tf.constant(distinct, tf.string))
    splits = pieces.ids.row_splits.numpy()
    ids, starts, ends = (part.flat_values.numpy() for part in pieces)
    found = {}
    for text, begin, end in zip(distinct, splits[:-1], splits[1:], strict=True):
        characters = _characters(text)
        found[text] = Context(ids[begin:end], characters[starts[begin:end]],
                              characters[ends[begin:end]])
    return [found[text] for text in texts]


def piece_span(context: Context, start: int, end: int) -> tuple[int, int] | None:
    """Returns the first and the last piece of the words that characters [start, end) touch."""
    touched = np.flatnonzero((context.ends > start) & (context.starts < end))
    return (int(touched[0]), int(touched[-1])) if touched.size else None


def window_spans(pieces: int, room: int, stride: int) -> list[tuple[int, int]]:
    """Returns first and one past the last piece of every window; at least one window.

    >>> window_spans(10, 6, 3)
    [(0, 6), (3, 9), (6, 10)]
    """
    spans = [(0, min(room, pieces))]
    while spans[-1][1] < pieces:
        first = spans[-1][0] + min(stride, room)
        spans.append((first, min(first + room, pieces)))
    return spans


def best_windows(spans: Sequence[tuple[int, int]]) -> list[np.ndarray]:
    """Tells for every window which of its pieces no other window shows with more context.

    More on the poorer side counts, then the longer window, then the earlier one.
    """
    pieces = np.arange(spans[-1][1])
    context = np.stack([
        np.where((pieces >= first) & (pieces < end),
                 np.minimum(pieces - first, end - 1 - pieces) + 0.01 * (end - first), -1.0)
        for first, end in spans])
    best = np.argmax(context, axis=0)
    return [best[first:end] == number for number, (first, end) in enumerate(spans)]


def best_answers(examples: Sequence[QuestionExample], questions: Questions,
                 beams: Iterable[Beams], *, max_pieces: int,
                 count: int) -> list[list[Prediction]]:
    """Returns the likeliest answers to every question, no two with the same text.

    Args:
        examples: that were encoded.
        questions: what they were encoded to.
        beams: one per row.
        max_pieces: longest answer.
        count: most answers per question.

    Returns:
        Per example, likeliest first; none if no window has a span that is allowed.
    """
    candidates: list[list[tuple[float, int, int]]] = [[] for _ in examples]
    for window, beam in zip(questions.windows, beams, strict=True):
        candidates[window.example] += _spans(window, beam, max_pieces)
    found = []
    for example, context, spans in zip(examples, questions.contexts, candidates, strict=True):
        answers: dict[str, Prediction] = {}
        for score, first, last in sorted(spans, key=lambda span: -span[0]):
            start = int(context.starts[first])
            text = example.context[start:int(context.ends[last])]
            answers.setdefault(text, Prediction(text=text, start=start, log_probability=score))
            if len(answers) == count:
                break
        found.append(list(answers.values()))
    return found


def no_answer_scores(questions: Questions, logits: Sequence[float]) -> list[float]:
    """Returns the smallest logit of "impossible" over the windows of every question.

    One window that seems to hold the answer is enough.
    """
    scores = [np.inf] * len(questions.contexts)
    for window, logit in zip(questions.windows, logits, strict=True):
        scores[window.example] = min(scores[window.example], float(logit))
    return scores


def chosen_answers(keys: Sequence[str], answers: Sequence[Sequence[Prediction]],
                   scores: Sequence[float], threshold: float) -> Mapping[str, str]:
    """Returns question's key -> answer, empty where "no answer" scores above the threshold."""
    return {key: "" if score > threshold or not found else found[0].text
            for key, found, score in zip(keys, answers, scores, strict=True)}


def _spans(window: Window, beam: Beams, max_pieces: int) -> list[tuple[float, int, int]]:
    """Returns score, first and last piece of the context of all allowed spans of a row."""
    first = beam.start_index - window.position
    last = beam.end_index - window.position
    size = len(window.is_best)
    starts_here = (first >= 0) & (first < size)
    starts_here &= window.is_best[np.clip(first, 0, size - 1)] if size else False
    allowed = (starts_here[:, np.newaxis] & (last >= first[:, np.newaxis]) & (last < size)
               & (last - first[:, np.newaxis] < max_pieces))
    return [(float(beam.start_log_probs[row] + beam.end_log_probs[row, column]),
             window.first + int(first[row]), window.first + int(last[row, column]))
            for row, column in np.argwhere(allowed)]


def _characters(text: str) -> np.ndarray:
    """Returns int64 [bytes + 1]: the number of characters before every byte of UTF-8."""
    data = np.frombuffer(text.encode(), np.uint8)
    begins = (data & 0xC0) != 0x80
    return np.concatenate([np.cumsum(begins) - begins, [begins.sum()]])
