"""Scores of question answering: Model Garden's copy of SQuAD 2.0's evaluation.

It gives SQuAD 1.1's numbers on files in which every question has an answer.
"""

from collections.abc import Mapping, Sequence

from official.nlp.tools import squad_evaluate_v2_0 as official

from electra_tf.command_line import UserError


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
    missing = sorted(gold.keys() - predictions.keys())
    if missing:
        raise UserError(f"{len(missing)} questions have no prediction, {missing[0]!r} among them.")
    questions = [{"id": key, "answers": [{"text": text} for text in texts]}
                 for key, texts in gold.items()]
    results = official.evaluate(
        [{"paragraphs": [{"qas": questions}]}], {key: predictions[key] for key in gold})
    names = {"exact": "exact_match", "f1": "f1", "HasAns_exact": "answerable_exact_match",
             "HasAns_f1": "answerable_f1", "NoAns_exact": "unanswerable_accuracy"}
    return {ours: results[theirs] / 100.0 for theirs, ours in names.items() if theirs in results}
