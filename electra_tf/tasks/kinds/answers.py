"""Decodes answers from the beams of windows, and scores them as SQuAD 2.0's evaluation does.

If every question has an answer, the scores are SQuAD 1.1's, except for gold answers that consist of
articles and punctuation. Such an answer is ignored beside others; alone it means "no answer".
"""

import collections
import itertools
import re
import string
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.modeling.task_heads import SpanBeams
from electra_tf.tasks.kinds.base import RowResults, Scored
from electra_tf.tasks.task import QuestionExample
from electra_tf.text.rows import Windows

_NEVER = -1e30
"""Log probability of a span that isn't allowed."""


class Contexts(NamedTuple):
    """The C contexts of B questions, and the offsets of their pieces."""

    texts: tf.Tensor  # string [C].
    starts: tf.RaggedTensor  # [C, (pieces)]: first byte of the piece, in UTF-8.
    ends: tf.RaggedTensor  # [C, (pieces)]: one past its last byte.
    of_question: tf.Tensor  # int32 [B]: index of each question's context.


class Questions(NamedTuple):
    """Encoded questions: rows, and the windows and contexts that they come from."""

    rows: list[Row]
    """Targets are "start" and "end", int32 positions in the row, 0 if the window lacks the answer,
    and "impossible", float32: 1.0 in that case or if the question has no answer, 0.0 otherwise."""
    windows: Windows
    contexts: Contexts
    query_lengths: np.ndarray  # int64 [B]: numbers of tokens before the cut.


class Answers(NamedTuple):
    """The most likely answer to each question, [B] each."""

    text: tf.Tensor  # string; empty where no span is allowed.
    start: tf.Tensor  # int32: first character in the context.
    end: tf.Tensor  # int32: one past the last.
    score: tf.Tensor  # float32: probability of start and end within their window.
    impossible: tf.Tensor  # float32: smallest logit of "no answer" over the windows.


def score(examples: Sequence[QuestionExample], parts: Sequence[Questions],
          results: Sequence[RowResults], config: TaskConfig, threshold: float | None) -> Scored:
    """Returns predictions and scores; `results` hold the fields of `SpanBeams` of every row.

    `threshold` None searches the best one if answerability was learned and gold answers are known.
    """
    # The most likely answer of every question, over all its windows.
    has_logits, row_results = "impossible" in results[0], iter(results)
    with tf.device("CPU:0"):
        parts_answers = [best_answers(
            part.contexts, part.windows, _beams([*itertools.islice(row_results, len(part.rows))]),
            max_pieces=config.max_answer_length) for part in parts]
    answers = Answers(*map(np.concatenate, zip(*parts_answers, strict=True)))
    texts = [text.decode() for text in answers.text]
    logits = answers.impossible.astype(np.float64).tolist()
    gold = {example.key: example.gold for example in examples}
    is_known = all(example.gold or example.is_impossible for example in examples)

    # The threshold of the logit of "no answer" that has the best F1.
    extra_scores = {}
    if threshold is None and has_logits and is_known:
        threshold = extra_scores["threshold"] = best_threshold(gold, texts, logits)
    if threshold is None:
        threshold = config.no_answer_threshold

    # A record for each question, and the scores if the truth is known.
    predictions = {key: "" if has_logits and logit > threshold else text
                   for key, text, logit in zip(gold, texts, logits, strict=True)}
    records = [
        {"key": example.key, "question": example.question}
        | ({"gold": list(example.gold)} if example.gold or example.is_impossible else {})
        | {"prediction": predictions[example.key]}
        | ({"no_answer_score": logit} if has_logits else {})
        | {"best_answer": text, "start": int(start), "score": float(probability)}
        for example, text, logit, start, probability in zip(
            examples, texts, logits, answers.start, answers.score, strict=True)]
    return Scored(records=records, scores=answer_scores(gold, predictions) | extra_scores
                  if is_known else {})


def best_answers(contexts: Contexts, windows: Windows, beams: SpanBeams, *,
                 max_pieces: int) -> Answers:
    """Returns the most likely answer, of at most `max_pieces`, to every question by graph ops."""
    # The window with the most likely answer of every question; the first one of equals.
    scores, first, last = _best_spans(windows, beams, max_pieces)
    num_questions, num_windows = tf.size(contexts.of_question), tf.size(scores)
    best = tf.math.unsorted_segment_max(scores, windows.example, num_questions)
    is_best = scores == tf.gather(best, windows.example)
    window = tf.math.unsorted_segment_min(
        tf.where(is_best, tf.range(num_windows), num_windows), windows.example, num_questions)
    window = tf.minimum(window, tf.maximum(num_windows - 1, 0))

    # The answer's bytes in the context, from those of its first and last piece.
    has_span = best > _NEVER
    first_piece = tf.gather(tf.cast(contexts.starts.row_starts(), tf.int32), contexts.of_question)
    text = tf.gather(tf.strings.unicode_transcode(
        contexts.texts, "UTF-8", "UTF-8", errors="ignore"), contexts.of_question)

    def byte_offset(offsets: tf.RaggedTensor, piece: tf.Tensor) -> tf.Tensor:
        # A context without pieces gets 0.
        flat = tf.concat([tf.cast(offsets.flat_values, tf.int32), [0]], axis=0)
        index = first_piece + tf.gather(piece, window)
        return tf.gather(flat, tf.where(has_span, index, tf.size(flat) - 1))

    def count_characters(num_bytes: tf.Tensor) -> tf.Tensor:
        zeros = tf.zeros_like(num_bytes)
        return tf.strings.length(tf.strings.substr(text, zeros, num_bytes), unit="UTF8_CHAR")

    start, end = byte_offset(contexts.starts, first), byte_offset(contexts.ends, last)
    impossible = tf.math.unsorted_segment_min(beams.impossible, windows.example, num_questions)
    return Answers(tf.strings.substr(text, start, end - start), count_characters(start),
                   count_characters(end), tf.where(has_span, tf.exp(best), 0.0), impossible)


def _beams(results: Sequence[RowResults]) -> SpanBeams:
    """Returns the beams of rows; -1, which is not a position, pads the beams of short rows."""
    fields = {"impossible": np.zeros(len(results), np.float32)}
    for name in results[0]:
        values = [result[name] for result in results]
        shape = max(np.shape(value) for value in values)
        fields[name] = np.stack([value if np.shape(value) == shape else np.pad(
            value, [[0, shape[0] - len(value)]] * value.ndim, constant_values=-1)
            for value in values])
    return SpanBeams(**fields)


def _best_spans(windows: Windows, beams: SpanBeams,
                max_pieces: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns log probability, first and last piece of every window's best span, [W] each.

    A span is within the context, has at most `max_pieces`, and begins where `windows.is_best`.
    """
    # Pieces of the context that the K starts and K ends of each stand for, [W, K, 1] and [W, K, K].
    wide = (slice(None), tf.newaxis, tf.newaxis)
    first = beams.start_index[:, :, tf.newaxis] - windows.position[wide]
    last = beams.end_index - windows.position[wide]
    sizes = windows.sizes[wide]
    offsets = tf.cumsum(windows.sizes, exclusive=True)[wide]
    is_best = tf.gather(tf.concat([windows.is_best, [False]], axis=0),
                        offsets + tf.clip_by_value(first, 0, tf.maximum(sizes - 1, 0)))
    # log P(start) + log P(end | start) of the allowed spans, and the best of them.
    allowed = ((first >= 0) & (first < sizes) & is_best & (last >= first)
               & (last < sizes) & (last - first < max_pieces))
    scores = tf.where(
        allowed, beams.start_log_probs[:, :, tf.newaxis] + beams.end_log_probs, _NEVER)
    num_starts = tf.shape(scores)[1]
    num_spans = num_starts * num_starts  # Exported graphs have no op Pow.
    choice = tf.argmax(tf.reshape(scores, [-1, num_spans]), axis=1, output_type=tf.int32)

    def chosen(values: tf.Tensor) -> tf.Tensor:
        values = tf.broadcast_to(values, tf.shape(scores))
        return tf.gather(tf.reshape(values, [-1, num_spans]), choice, batch_dims=1)

    window_first = windows.first[wide]
    return chosen(scores), chosen(window_first + first), chosen(window_first + last)


def answer_scores(gold: Mapping[str, Sequence[str]],
                  predictions: Mapping[str, str]) -> dict[str, float]:
    """Returns exact match and F1, in [0, 1], over all questions and by answerability.

    `gold` has the annotators' answers by id, none if the context has no answer. `predictions` has
    one answer for each, "" for none. Case, punctuation, articles and spaces are ignored. The gold
    answer with the best score counts.
    """
    exact = {key: float(_tokens(predictions[key]) in _accepted(texts))
             for key, texts in gold.items()}
    f1 = {key: _f1(texts, predictions[key]) for key, texts in gold.items()}
    answerable = [key for key in gold if gold[key]]
    unanswerable = [key for key in gold if not gold[key]]
    scores = {"exact_match": _mean(exact, gold), "f1": _mean(f1, gold)}
    if answerable:
        scores |= {"answerable_exact_match": _mean(exact, answerable),
                   "answerable_f1": _mean(f1, answerable)}
    if unanswerable:
        scores["unanswerable_accuracy"] = _mean(exact, unanswerable)
    return scores


def best_threshold(gold: Mapping[str, Sequence[str]], texts: Sequence[str],
                   logits: Sequence[float]) -> float:
    """Returns the logit of "no answer" above which no answer is given, for the best F1.

    `texts` are the answers if every question gets one, `logits` those of "no answer".
    """
    # Compared as probabilities, as SQuAD's script does: they saturate where logits do not.
    probabilities = 1.0 / (1.0 + np.exp(-np.asarray(logits, np.float64)))
    order = np.argsort(probabilities, kind="stable")
    # The sum of F1 without answers, and how each answer, in this order, changes it.
    gains = np.array([_f1(accepted, text) if accepted else -float(text != "")
                      for accepted, text in zip(gold.values(), texts, strict=True)])
    unanswerable = sum(not accepted for accepted in gold.values())
    best = np.cumsum([unanswerable, *gains[order]]).argmax()
    largest = probabilities[order[best - 1]] if best else 0.0
    # In the middle of a gap, as logits in other batches and exports differ in the last bits.
    padded = [min(logits) - 2.0, *sorted(logits), max(logits) + 2.0]
    count = np.count_nonzero(probabilities <= largest)
    return (padded[count] + padded[count + 1]) / 2


def _tokens(text: str) -> list[str]:
    """Returns the words to compare, in lower case and without punctuation and articles."""
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _accepted(gold: Sequence[str]) -> list[list[str]]:
    return list(filter(None, map(_tokens, gold))) or [[]]


def _f1(gold: Sequence[str], prediction: str) -> float:
    predicted = _tokens(prediction)

    def overlap(words: Sequence[str]) -> float:
        common = (collections.Counter(words) & collections.Counter(predicted)).total()
        if not common:
            return float(words == predicted)
        precision, recall = common / len(predicted), common / len(words)
        return 2 * precision * recall / (precision + recall)

    return max(map(overlap, _accepted(gold)))


def _mean(values: Mapping[str, float], keys: Collection[str]) -> float:
    # The factors round as SQuAD's script does, which computes per cent.
    return 100.0 * sum(values[key] for key in keys) / len(keys) / 100.0
