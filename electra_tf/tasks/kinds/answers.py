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
from electra_tf.text.windows import Windows

_NEVER = -1e30
"""Log probability of a span that isn't allowed."""


class Contexts(NamedTuple):
    """The C contexts of B questions, and the places of their pieces."""

    texts: tf.Tensor  # string [C].
    starts: tf.RaggedTensor  # [C, (pieces)]: first byte of the piece, in UTF-8.
    ends: tf.RaggedTensor  # [C, (pieces)]: one past its last byte.
    of: tf.Tensor  # int32 [B]: each question's context.


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
    learned, of_rows = "impossible" in results[0], iter(results)
    with tf.device("CPU:0"):
        answers = [best_answers(
            part.contexts, part.windows, _beams(list(itertools.islice(of_rows, len(part.rows)))),
            max_pieces=config.max_answer_length) for part in parts]
    found = Answers(*map(np.concatenate, zip(*answers, strict=True)))
    texts = [text.decode() for text in found.text]
    none = found.impossible.astype(np.float64).tolist()
    known = all(example.gold or example.is_impossible for example in examples)
    gold = {example.key: example.gold for example in examples}
    extra = {}
    if threshold is None and learned and known:
        threshold = extra["threshold"] = best_threshold(gold, texts, none)
    if threshold is None:
        threshold = config.no_answer_threshold
    chosen = {key: "" if learned and logit > threshold else text
              for key, text, logit in zip(gold, texts, none, strict=True)}
    records = [
        {"key": one.key, "question": one.question}
        | ({"gold": list(one.gold)} if one.gold or one.is_impossible else {})
        | {"prediction": chosen[one.key]} | ({"no_answer_score": logit} if learned else {})
        | {"best_answer": text, "start": int(start), "score": float(share)}
        for one, text, logit, start, share in zip(
            examples, texts, none, found.start, found.score, strict=True)]
    return Scored(records=records, scores=answer_scores(gold, chosen) | extra if known else {})


def best_answers(contexts: Contexts, parts: Windows, beams: SpanBeams, *,
                 max_pieces: int) -> Answers:
    """Returns the most likely answer, of at most `max_pieces`, to every question by graph ops."""
    scores, first, last = _best_spans(parts, beams, max_pieces)
    count = tf.size(contexts.of)
    best = tf.math.unsorted_segment_max(scores, parts.example, count)
    numbers = tf.range(tf.size(scores))
    is_best = scores == tf.gather(best, parts.example)
    window = tf.math.unsorted_segment_min(
        tf.where(is_best, numbers, tf.size(scores)), parts.example, count)
    window = tf.minimum(window, tf.maximum(tf.size(scores) - 1, 0))
    found = best > _NEVER
    before = tf.gather(tf.cast(contexts.starts.row_starts(), tf.int32), contexts.of)

    def of_piece(values: tf.RaggedTensor, piece: tf.Tensor) -> tf.Tensor:
        # A context without pieces gets 0.
        flat = tf.concat([tf.cast(values.flat_values, tf.int32), [0]], axis=0)
        place = before + tf.gather(piece, window)
        return tf.gather(flat, tf.where(found, place, tf.size(flat) - 1))

    start, end = of_piece(contexts.starts, first), of_piece(contexts.ends, last)
    text = tf.gather(tf.strings.unicode_transcode(
        contexts.texts, "UTF-8", "UTF-8", errors="ignore"), contexts.of)

    def characters(bytes_before: tf.Tensor) -> tf.Tensor:
        zeros = tf.zeros_like(bytes_before)
        return tf.strings.length(tf.strings.substr(text, zeros, bytes_before), unit="UTF8_CHAR")

    impossible = tf.math.unsorted_segment_min(beams.impossible, parts.example, count)
    return Answers(tf.strings.substr(text, start, end - start), characters(start),
                   characters(end), tf.where(found, tf.exp(best), 0.0), impossible)


def _beams(results: Sequence[RowResults]) -> SpanBeams:
    """Returns the beams of rows; -1, which is not a position, pads the beams of short rows."""
    fields = {"impossible": np.zeros(len(results), np.float32)}
    for name in results[0]:
        values = [result[name] for result in results]
        most = max(np.shape(value) for value in values)
        fields[name] = np.stack([value if np.shape(value) == most else np.pad(
            value, [[0, most[0] - len(value)]] * value.ndim, constant_values=-1)
            for value in values])
    return SpanBeams(**fields)


def _best_spans(parts: Windows, beams: SpanBeams,
                max_pieces: int) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns log probability, first and last piece of every window's best span, [W] each.

    A span is within the context, has at most `max_pieces`, and begins where `parts.is_best`.
    """
    wide = (slice(None), tf.newaxis, tf.newaxis)
    first = beams.start_index[:, :, tf.newaxis] - parts.position[wide]
    last = beams.end_index - parts.position[wide]
    sizes = parts.sizes[wide]
    offsets = tf.cumsum(parts.sizes, exclusive=True)[wide]
    is_best = tf.concat([parts.is_best, [False]], axis=0)
    place = offsets + tf.clip_by_value(first, 0, tf.maximum(sizes - 1, 0))
    allowed = ((first >= 0) & (first < sizes) & tf.gather(is_best, place) & (last >= first)
               & (last < sizes) & (last - first < max_pieces))
    scores = tf.where(
        allowed, beams.start_log_probs[:, :, tf.newaxis] + beams.end_log_probs, _NEVER)
    width = tf.shape(scores)[1]
    flat = tf.reshape(scores, [-1, width * width])
    choice = tf.argmax(flat, axis=1, output_type=tf.int32)

    def chosen(values: tf.Tensor) -> tf.Tensor:
        wide = tf.broadcast_to(values, tf.shape(scores))
        return tf.gather(tf.reshape(wide, [-1, width * width]), choice, batch_dims=1)

    before = parts.first[wide]
    return chosen(scores), chosen(before + first), chosen(before + last)


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


def best_threshold(gold: Mapping[str, Sequence[str]], found: Sequence[str],
                   scores: Sequence[float]) -> float:
    """Returns the logit of "no answer" above which no answer is given, for the best F1."""
    always = dict(zip(gold, found, strict=True))
    # Compared as probabilities, as SQuAD's script does: they saturate where logits do not.
    probabilities = dict(zip(gold, (1.0 / (1.0 + np.exp(-np.asarray(scores, np.float64)))).tolist(),
                             strict=True))
    total = best_total = float(sum(not texts for texts in gold.values()))
    best = 0.0
    for key in sorted(gold, key=probabilities.get):
        if gold[key]:
            total += _f1(gold[key], always[key])
        elif always[key]:
            total -= 1.0
        if total > best_total:
            best, best_total = probabilities[key], total
    # With a threshold below all logits no answer is given; JSON can store only a finite one.
    return max((value for key, value in zip(gold, scores, strict=True)
                if probabilities[key] <= best), default=min(scores) - 1.0)


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
