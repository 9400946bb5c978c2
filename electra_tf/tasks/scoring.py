"""From what a network says of rows to predictions of examples, and their scores."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.config.finetuning import TaskConfig
from electra_tf.metrics.labels import label_scores
from electra_tf.metrics.questions import answer_scores, best_threshold
from electra_tf.metrics.spans import span_scores
from electra_tf.tasks import answers
from electra_tf.tasks.answers import Beams, Questions
from electra_tf.tasks.examples import QuestionExample, TaggedExample, TextExample

RowResults = Mapping[str, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scored:
    """What came out of one split."""

    records: Sequence[Mapping[str, Any]]
    """One per example, in their order: plain values, "key" and "prediction" among them."""
    scores: Mapping[str, float]
    """Empty if the truth isn't known."""


def score_classes(examples: Sequence[TextExample], results: Sequence[RowResults], *,
                  labels: Sequence[str], words: Sequence[str],
                  metrics: Sequence[str]) -> Scored:
    """Scores classification.

    Args:
        examples: texts.
        results: per example, with "logits" [classes].
        labels: as the examples have them.
        words: as predictions have them.
        metrics: what is computed.
    """
    logits = np.stack([result["logits"] for result in results]).astype(np.float64)
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    chosen = logits.argmax(axis=1)
    records = [{"key": example.key, "prediction": words[choice],
                "probability": float(share[choice])}
               for example, choice, share in zip(examples, chosen, shares, strict=True)]
    if any(example.label is None for example in examples):
        return Scored(records=records, scores={})
    index = {label: number for number, label in enumerate(labels)}
    truth = np.array([index[example.label] for example in examples])
    return Scored(records=records, scores=label_scores(metrics, truth, chosen))


def score_numbers(examples: Sequence[TextExample], results: Sequence[RowResults], *,
                  metrics: Sequence[str]) -> Scored:
    """Scores regression; results hold "predictions" []."""
    predictions = np.array([float(result["predictions"]) for result in results])
    records = [{"key": example.key, "prediction": float(value)}
               for example, value in zip(examples, predictions, strict=True)]
    if any(example.label is None for example in examples):
        return Scored(records=records, scores={})
    truth = np.array([example.label for example in examples])
    return Scored(records=records, scores=label_scores(metrics, truth, predictions))


def score_tags(examples: Sequence[TaggedExample], results: Sequence[RowResults], *,
               origins: Sequence[tuple[int, int]], tags: Sequence[str]) -> Scored:
    """Scores tagging.

    Args:
        examples: sentences.
        results: per row, with "tags" int32 [W].
        origins: per row the index of its sentence and of its first word.
        tags: the tag set.
    """
    predicted: list[list[str]] = [[] for _ in examples]
    ends = [*origins[1:], (len(examples), 0)]
    for (sentence, first), (next_sentence, next_first), result in zip(
            origins, ends, results, strict=True):
        last = next_first if next_sentence == sentence else len(examples[sentence].words)
        predicted[sentence] += [tags[index] for index in result["tags"][:last - first]]
    records = [{"key": example.key, "words": list(example.words), "prediction": found}
               for example, found in zip(examples, predicted, strict=True)]
    if any(example.tags is None for example in examples):
        return Scored(records=records, scores={})
    return Scored(records=records,
                  scores=span_scores([example.tags for example in examples], predicted))


def score_answers(examples: Sequence[QuestionExample], questions: Questions,
                  results: Sequence[RowResults], config: TaskConfig,
                  threshold: float | None) -> Scored:
    """Scores question answering; results hold the fields of `SpanBeams`.

    Args:
        examples: that were encoded.
        questions: what they were encoded to.
        results: per row.
        config: longest answer and number of candidates.
        threshold: logit above which a question gets no answer; None searches the best one where
            answerability was learned and the truth is known.
    """
    beams = [Beams(**{field.name: result[field.name] for field in dataclasses.fields(Beams)})
             for result in results]
    found = answers.best_answers(examples, questions, beams,
                                 max_pieces=config.max_answer_length, count=config.n_best)
    keys = [example.key for example in examples]
    learned = "impossible" in results[0]
    none = (answers.no_answer_scores(questions, [result["impossible"] for result in results])
            if learned else [-np.inf] * len(examples))
    known = all(example.answers or example.is_impossible for example in examples)
    gold = {example.key: [answer.text for answer in example.answers] for example in examples}
    extra = {}
    if threshold is None and learned and known:
        threshold = extra["threshold"] = _best_threshold(gold, keys, found, none)
    chosen = answers.chosen_answers(
        keys, found, none, config.no_answer_threshold if threshold is None else threshold)
    records = [
        {"key": key, "prediction": chosen[key]} | ({"no_answer_score": float(score)} if learned
                                                  else {})
        | {"n_best": [dataclasses.asdict(one) for one in candidates]}
        for key, score, candidates in zip(keys, none, found, strict=True)]
    scores = answer_scores(gold, chosen) | extra if known else {}
    return Scored(records=records, scores=scores)


def _best_threshold(gold: Mapping[str, Sequence[str]], keys: Sequence[str],
                    found: Sequence[Sequence[answers.Prediction]],
                    scores: Sequence[float]) -> float:
    """Searches among probabilities, which is how the official script does it; returns a logit."""
    always = answers.chosen_answers(keys, found, scores, np.inf)
    probabilities = 1.0 / (1.0 + np.exp(-np.asarray(scores, np.float64)))
    best = best_threshold(gold, always, dict(zip(keys, map(float, probabilities), strict=True)))
    # Below all of them no question has an answer; a finite number, so that JSON can hold it.
    return max((score for score, probability in zip(scores, probabilities, strict=True)
                if probability <= best), default=min(scores) - 1.0)
