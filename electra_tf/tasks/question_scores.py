"""Scores of question answering: Model Garden's copy of SQuAD 2.0's evaluation.

On files in which every question has an answer it gives SQuAD 1.1's numbers, but for answers that
are nothing but articles and punctuation: such a gold answer doesn't count beside others here, and
alone it stands for "no answer", which an answer of articles meets with an F1 of 1 (0 in SQuAD 1.1).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from official.nlp.tools import squad_evaluate_v2_0 as official

from electra_tf.platform.errors import UserError


def answer_scores(gold: Mapping[str, Sequence[str]],
                  predictions: Mapping[str, str]) -> dict[str, float]:
    """Returns exact match and F1, in [0, 1], over all questions and by whether they have answers.

    Case, punctuation, articles and spaces don't count; of several gold answers the nearest does.

    Args:
        gold: id -> answers of people; none where the context has no answer.
        predictions: id -> answer, empty for "no answer".

    Raises:
        UserError: a question without a prediction.
    """
    _require_all(gold, predictions)
    results = official.evaluate(_articles(gold), {key: predictions[key] for key in gold})
    names = {"exact": "exact_match", "f1": "f1", "HasAns_exact": "answerable_exact_match",
             "HasAns_f1": "answerable_f1", "NoAns_exact": "unanswerable_accuracy"}
    return {ours: results[theirs] / 100.0 for theirs, ours in names.items() if theirs in results}


def best_threshold(gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str],
                   probabilities: Mapping[str, float]) -> float:
    """Returns above which probability of "no answer" to give none, for the best F1.

    Args:
        gold: as for `answer_scores`.
        predictions: id -> the likeliest answer, even where there may be none.
        probabilities: id -> probability in [0, 1] that there is no answer.
    """
    _require_all(gold, predictions)
    results = official.evaluate(
        _articles(gold), {key: predictions[key] for key in gold},
        {key: probabilities[key] for key in gold})
    return float(results["final_f1_thresh"])


def _articles(gold: Mapping[str, Sequence[str]]) -> list[Mapping[str, Any]]:
    questions = [{"id": key, "answers": [{"text": text} for text in texts]}
                 for key, texts in gold.items()]
    return [{"paragraphs": [{"qas": questions}]}]


def _require_all(gold: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> None:
    missing = sorted(gold.keys() - predictions.keys())
    if missing:
        raise UserError(f"{len(missing)} questions have no prediction, {missing[0]!r} among them.")
