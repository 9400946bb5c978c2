"""Decodes answers from the beams of windows, and scores them as SQuAD 2.0's evaluation does.

`best_answers` returns several answers per question, for predictions; `graph_answers` the best one,
inside the graph of an exported model. Where every question has an answer, the scores are SQuAD
1.1's, except for gold answers that consist of articles and punctuation: such an answer is ignored
beside others, and alone it stands for "no answer".
"""

import collections
import dataclasses
import re
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.modeling.task_heads import SpanBeams
from electra_tf.tasks.examples import QuestionExample
from electra_tf.tasks.kinds.kind import RowResults, Scored
from electra_tf.text.tokenizer import Pieces
from electra_tf.text.windows import Windows, spans

_BEAMS = ("start_log_probs", "start_index", "end_log_probs", "end_index")
"""Fields of `SpanBeams`: [K], [K], [K, K], [K, K]."""
_NOWHERE = -1
"""Index of what fills up beams that are narrower than others."""
_NEVER = -1e30
"""Log probability of a span that isn't allowed."""


class Context(NamedTuple):
    """Byte offsets, in the context's UTF-8, of the words that its n pieces belong to."""

    starts: np.ndarray
    """int64 [n]: first byte of the piece's word."""
    ends: np.ndarray
    """int64 [n]: one past its last byte."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions:
    """Encoded questions: rows, and the way from rows back to contexts."""

    rows: list[Row]
    """With the targets "start" and "end", int32 positions in the row, 0 where the window holds no
    answer, and "impossible", 1.0 there (or where the question has none) and 0.0 elsewhere."""
    windows: Windows
    """Windows of the rows, in arrays."""
    contexts: list[Context]
    """One per example."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prediction:
    """A candidate answer."""

    text: str
    start: int
    """First character in the context."""
    log_probability: float
    """Log probability of start and end together, within its window."""


class Answers(NamedTuple):
    """The best answer to each question, [B] each."""

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


def score(examples: Sequence[QuestionExample], questions: Questions,
          results: Sequence[RowResults], config: TaskConfig, threshold: float | None) -> Scored:
    """Scores question answering; `results` hold the fields of `SpanBeams` of every row.

    Without a `threshold` the best one is searched, if answerability was learned and the truth is
    known.
    """
    found = best_answers(examples, questions, results, max_pieces=config.max_answer_length,
                         count=config.n_best)
    learned = "impossible" in results[0]
    none = (no_answer_scores(questions, [result["impossible"] for result in results])
            if learned else [-np.inf] * len(examples))
    known = all(example.gold or example.is_impossible for example in examples)
    gold = {example.key: example.gold for example in examples}
    extra = {}
    if threshold is None and learned and known:
        threshold = extra["threshold"] = best_threshold(gold, found, none)
    chosen = chosen_answers(
        gold, found, none, config.no_answer_threshold if threshold is None else threshold)
    records = [
        {"key": one.key, "question": one.question}
        | ({"gold": list(one.gold)} if one.gold or one.is_impossible else {})
        | {"prediction": chosen[one.key]} | ({"no_answer_score": float(value)} if learned else {})
        | {"n_best": [dataclasses.asdict(candidate) for candidate in candidates]}
        for one, value, candidates in zip(examples, none, found, strict=True)]
    return Scored(records=records, scores=answer_scores(gold, chosen) | extra if known else {})


def best_answers(examples: Sequence[QuestionExample], questions: Questions,
                 results: Sequence[RowResults], *, max_pieces: int,
                 count: int) -> list[list[Prediction]]:
    """Returns at most `count` distinct answers to every question, most likely first.

    An answer has at most `max_pieces` word pieces.
    """
    candidates: list[list[tuple[float, int, int]]] = [[] for _ in examples]
    starts, start_index, ends, end_index = (
        _stacked([result[name] for result in results]) for name in _BEAMS)
    found = spans(Windows(*map(tf.constant, questions.windows)),
                  tf.constant(start_index, tf.int32), tf.constant(end_index, tf.int32),
                  most_pieces=max_pieces)
    scores, last = starts[:, :, np.newaxis] + ends, found.last.numpy()
    first = np.broadcast_to(found.first.numpy(), last.shape)
    for place in zip(*np.nonzero(found.allowed.numpy()), strict=True):
        candidates[questions.windows.example[place[0]]].append(
            (float(scores[place]), int(first[place]), int(last[place])))
    return [_distinct(example.context.encode(), context, spans_found, count)
            for example, context, spans_found in zip(
                examples, questions.contexts, candidates, strict=True)]


def _stacked(values: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the beams of all rows; those of short rows are padded with `_NOWHERE`."""
    most = max(len(value) for value in values)
    return np.stack([value if len(value) == most else np.pad(
        value, [[0, most - len(value)]] * value.ndim, constant_values=_NOWHERE)
        for value in values])


def _distinct(text: bytes, context: Context, found: Sequence[tuple[float, int, int]],
              count: int) -> list[Prediction]:
    answers: dict[str, Prediction] = {}
    for value, first, last in sorted(found, key=lambda span: -span[0]):
        start = int(context.starts[first])
        answer = text[start:int(context.ends[last])].decode()
        answers.setdefault(answer, Prediction(
            text=answer, start=len(text[:start].decode()), log_probability=value))
        if len(answers) == count:
            break
    return list(answers.values())


def no_answer_scores(questions: Questions, logits: Sequence[float]) -> list[float]:
    """Returns the smallest logit of "impossible" over the windows of every question."""
    scores = np.full(len(questions.contexts), np.inf)
    np.minimum.at(scores, questions.windows.example, np.asarray(logits, np.float64))
    return scores.tolist()


def chosen_answers(keys: Iterable[str], answers: Sequence[Sequence[Prediction]],
                   scores: Sequence[float], threshold: float) -> Mapping[str, str]:
    """Returns question's key -> answer, empty where "no answer" scores above the threshold."""
    return {key: "" if score > threshold or not found else found[0].text
            for key, found, score in zip(keys, answers, scores, strict=True)}


def graph_answers(contexts: tf.Tensor, parts: Windows, pieces: Pieces, beams: SpanBeams, *,
                  max_pieces: int) -> Answers:
    """Returns the most likely answer to every question about contexts, string [B], by graph ops."""
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
    found = spans(parts, beams.start_index, beams.end_index, most_pieces=max_pieces)
    scores = tf.where(
        found.allowed, beams.start_log_probs[:, :, tf.newaxis] + beams.end_log_probs, _NEVER)
    width = tf.shape(scores)[1]
    flat = tf.reshape(scores, [-1, width * width])
    choice = tf.argmax(flat, axis=1, output_type=tf.int32)

    def chosen(values: tf.Tensor) -> tf.Tensor:
        wide = tf.broadcast_to(values, tf.shape(scores))
        return tf.gather(tf.reshape(wide, [-1, width * width]), choice, batch_dims=1)

    return chosen(scores), chosen(found.first), chosen(found.last)


def answer_scores(gold: Mapping[str, Sequence[str]],
                  predictions: Mapping[str, str]) -> dict[str, float]:
    """Returns exact match and F1, in [0, 1], over all questions and by whether they have answers.

    `gold` has the annotators' answers by id, none where the context has no answer; `predictions`
    an answer for each, "" for none. Case, punctuation, articles and spaces are ignored; the best of
    several gold answers counts.
    """
    exact, f1 = ({key: score(texts, predictions[key]) for key, texts in gold.items()}
                 for score in (_exact, _f1))
    answerable = [key for key in gold if gold[key]]
    unanswerable = [key for key in gold if not gold[key]]
    scores = {"exact_match": _mean(exact, gold), "f1": _mean(f1, gold)}
    if answerable:
        scores |= {"answerable_exact_match": _mean(exact, answerable),
                   "answerable_f1": _mean(f1, answerable)}
    if unanswerable:
        scores["unanswerable_accuracy"] = _mean(exact, unanswerable)
    return scores


def best_threshold(gold: Mapping[str, Sequence[str]], found: Sequence[Sequence[Prediction]],
                   scores: Sequence[float]) -> float:
    """Returns the logit of "no answer" above which to give none, for the best F1.

    `found` are candidate answers to each question, most likely first; `scores` its logit.
    """
    always = chosen_answers(gold, found, scores, np.inf)
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
    # Below the lowest logit no question has an answer; a finite number can be stored as JSON.
    return max((value for key, value in zip(gold, scores, strict=True)
                if probabilities[key] <= best), default=min(scores) - 1.0)


def _tokens(text: str) -> list[str]:
    """Returns the words that count, in lower case and without punctuation and articles."""
    plain = text.lower().translate(str.maketrans("", "", string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _accepted(gold: Sequence[str]) -> list[list[str]]:
    return list(filter(None, map(_tokens, gold))) or [[]]


def _exact(gold: Sequence[str], prediction: str) -> float:
    return float(_tokens(prediction) in _accepted(gold))


def _f1(gold: Sequence[str], prediction: str) -> float:
    return max(_overlap(one, _tokens(prediction)) for one in _accepted(gold))


def _overlap(gold: Sequence[str], found: Sequence[str]) -> float:
    if not gold or not found:
        return float(gold == found)
    common = (collections.Counter(gold) & collections.Counter(found)).total()
    precision, recall = common / len(found), common / len(gold)
    return 2 * precision * recall / (precision + recall) if common else 0.0


def _mean(values: Mapping[str, float], keys: Collection[str]) -> float:
    # By way of per cent: the same rounding as SQuAD's script.
    return 100.0 * sum(values[key] for key in keys) / len(keys) / 100.0
