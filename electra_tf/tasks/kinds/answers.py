"""From beams over windows to answers as the contexts write them, and their scores.

`best_answers` returns several answers per question, for predictions; `graph_answers` the best one,
inside the graph of an exported model. Scores are those of Model Garden's copy of SQuAD 2.0's
evaluation. On files in which every question has an answer it gives SQuAD 1.1's numbers, except for
answers that consist of articles and punctuation: such a gold answer doesn't count beside others
here, and alone it stands for "no answer", which an answer of articles meets with an F1 of 1 (0 in
SQuAD 1.1).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from official.nlp.tools import squad_evaluate_v2_0 as official

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
    """Byte offsets, in the context's UTF-8, of the words that its pieces belong to."""

    starts: np.ndarray
    """int64 [n]: first byte of the piece's word."""
    ends: np.ndarray
    """int64 [n]: one past its last byte."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Questions:
    """Encoded questions: rows, and how to get back from them."""

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
    """Scores question answering; results hold the fields of `SpanBeams`.

    Args:
        examples: that were encoded.
        questions: what they were encoded to.
        results: per row.
        config: longest answer and number of candidates.
        threshold: logit above which a question gets no answer; None searches the best one where
            answerability was learned and the truth is known.
    """
    found = best_answers(examples, questions, results, max_pieces=config.max_answer_length,
                         count=config.n_best)
    keys = [example.key for example in examples]
    learned = "impossible" in results[0]
    none = (no_answer_scores(questions, [result["impossible"] for result in results])
            if learned else [-np.inf] * len(examples))
    known = all(example.gold or example.is_impossible for example in examples)
    gold = {example.key: example.gold for example in examples}
    extra = {}
    if threshold is None and learned and known:
        threshold = extra["threshold"] = best_threshold(gold, keys, found, none)
    chosen = chosen_answers(
        keys, found, none, config.no_answer_threshold if threshold is None else threshold)
    records = [
        {"key": key, "prediction": chosen[key]} | ({"no_answer_score": float(value)} if learned
                                                  else {})
        | {"n_best": [dataclasses.asdict(one) for one in candidates]}
        for key, value, candidates in zip(keys, none, found, strict=True)]
    scores = answer_scores(gold, chosen) | extra if known else {}
    return Scored(records=records, scores=scores)


def best_answers(examples: Sequence[QuestionExample], questions: Questions,
                 results: Sequence[RowResults], *, max_pieces: int,
                 count: int) -> list[list[Prediction]]:
    """Returns the likeliest answers to every question, no two with the same text.

    Args:
        examples: that were encoded.
        questions: what they were encoded to.
        results: per row, with the fields of `SpanBeams`.
        max_pieces: longest answer.
        count: most answers per question.

    Returns:
        Per example, likeliest first; none if no window has a span that is allowed.
    """
    candidates: list[list[tuple[float, int, int]]] = [[] for _ in examples]
    starts, start_index, ends, end_index = (
        _stacked([result[name] for result in results], fill=_NOWHERE) for name in _BEAMS)
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


def _stacked(values: Sequence[np.ndarray], *, fill: int) -> np.ndarray:
    """Returns beams of all rows, those of short rows, which have fewer positions, filled up."""
    most = max(len(value) for value in values)
    return np.stack([value if len(value) == most else np.pad(
        value, [[0, most - len(value)]] * value.ndim, constant_values=fill) for value in values])


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
    """Returns the smallest logit of "impossible" over the windows of every question.

    One window that seems to hold the answer is enough.
    """
    scores = np.full(len(questions.contexts), np.inf)
    np.minimum.at(scores, questions.windows.example, np.asarray(logits, np.float64))
    return scores.tolist()


def chosen_answers(keys: Sequence[str], answers: Sequence[Sequence[Prediction]],
                   scores: Sequence[float], threshold: float) -> Mapping[str, str]:
    """Returns question's key -> answer, empty where "no answer" scores above the threshold."""
    return {key: "" if score > threshold or not found else found[0].text
            for key, found, score in zip(keys, answers, scores, strict=True)}


def graph_answers(contexts: tf.Tensor, parts: Windows, pieces: Pieces, beams: SpanBeams, *,
            max_pieces: int) -> Answers:
    """Returns the likeliest answer to every question, by ops that a graph can hold.

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

    Case, punctuation, articles and spaces don't count; of several gold answers the nearest does.

    Args:
        gold: id -> answers of people; none where the context has no answer.
        predictions: id -> answer, empty for "no answer"; one for every question at least.
    """
    results = official.evaluate(_articles(gold), {key: predictions[key] for key in gold})
    names = {"exact": "exact_match", "f1": "f1", "HasAns_exact": "answerable_exact_match",
             "HasAns_f1": "answerable_f1", "NoAns_exact": "unanswerable_accuracy"}
    return {ours: results[theirs] / 100.0 for theirs, ours in names.items() if theirs in results}


def best_threshold(gold: Mapping[str, Sequence[str]], keys: Sequence[str],
                   found: Sequence[Sequence[Prediction]], scores: Sequence[float]) -> float:
    """Returns the logit of "no answer" above which to give none, for the best F1.

    The official script searches among probabilities.

    Args:
        gold: as for `answer_scores`.
        keys: of the questions.
        found: candidate answers to each, likeliest first.
        scores: logit of "no answer" of each.
    """
    always = chosen_answers(keys, found, scores, np.inf)
    probabilities = 1.0 / (1.0 + np.exp(-np.asarray(scores, np.float64)))
    best = float(official.evaluate(_articles(gold), always, dict(zip(
        keys, map(float, probabilities), strict=True)))["final_f1_thresh"])
    # Below all of them no question has an answer; a finite number, so that JSON can hold it.
    return max((score for score, probability in zip(scores, probabilities, strict=True)
                if probability <= best), default=min(scores) - 1.0)


def _articles(gold: Mapping[str, Sequence[str]]) -> list[Mapping[str, Any]]:
    questions = [{"id": key, "answers": [{"text": text} for text in texts]}
                 for key, texts in gold.items()]
    return [{"paragraphs": [{"qas": questions}]}]
