"""Answers are compared as SQuAD's servers do."""

import pytest
from official.nlp.tools import squad_evaluate_v1_1

from electra_tf.platform.errors import UserError
from electra_tf.tasks.kinds.answers import answer_scores, best_threshold


def exact_and_f1(gold, predicted):
    scores = answer_scores({"q": gold}, {"q": predicted})
    return scores["exact_match"], scores["f1"]


@pytest.mark.parametrize(("gold", "predicted", "exact", "f1"), [
    (["The Denver Broncos!"], "denver  broncos", 1, 1),  # Case, article, punctuation, spaces.
    (["Denver Broncos"], "Broncos", 0, 2 * 1 * 0.5 / 1.5),  # Precision 1, recall 1/2.
    (["24-10"], "2410", 1, 1),  # Punctuation goes without leaving a space.
    (["Denver", "the Broncos of Denver"], "Broncos of Denver", 1, 1),  # The nearest counts.
    (["a theatre"], "theatre", 1, 1),
    (["Denver"], "Carolina", 0, 0),
    (["Denver"], "", 0, 0),
    ([], "", 1, 1),
    ([], "Denver", 0, 0),
])
def test_one_answer(gold, predicted, exact, f1):
    assert exact_and_f1(gold, predicted) == pytest.approx((exact, f1))


OFFICIAL = [
    ("The cat", "cat", 1, 1), ("cat", "a cat an the", 1, 1), ("the", "", 1, 1),
    ("U.S.", "us", 1, 1),
    ("café", "cafe", 0, 0), ("10,000", "10000", 1, 1), ("1 2 2", "2 2 3", 0, 2 / 3),
    ("—", "", 0, 0), ("an apple a day", "apple day", 1, 1), ("The\xa0dog", "dog", 1, 1),
    ("don't", "dont", 1, 1), ("state-of-the-art", "state of art", 0, 0)]
"""What SQuAD's own evaluation script makes of these."""


@pytest.mark.parametrize(("gold", "predicted", "exact", "f1"), OFFICIAL)
def test_pairs_score_as_with_the_official_script(gold, predicted, exact, f1):
    assert exact_and_f1([gold], predicted) == pytest.approx((exact, f1))


def test_questions_with_and_without_answers_are_told_apart():
    gold = {"a": ["Denver"], "b": ["Carolina"], "c": []}
    scores = answer_scores(gold, {"a": "Denver", "b": "", "c": "Denver", "other": "x"})
    assert scores == pytest.approx({
        "exact_match": 1 / 3, "f1": 1 / 3, "answerable_exact_match": 1 / 2,
        "answerable_f1": 1 / 2, "unanswerable_accuracy": 0.0})


def test_a_missing_prediction_is_an_error():
    with pytest.raises(UserError, match="1 questions have no prediction, 'b' among them"):
        answer_scores({"a": ["x"], "b": []}, {"a": "x"})


def test_the_best_threshold_lies_between_what_has_answers_and_what_has_none():
    gold = {"a": ["x"], "b": ["y"], "c": [], "d": []}
    predictions = {"a": "x", "b": "y", "c": "wrong", "d": "wrong"}
    probabilities = {"a": 0.1, "b": 0.4, "c": 0.6, "d": 0.9}
    assert 0.4 <= best_threshold(gold, predictions, probabilities) < 0.6


def test_where_nothing_is_found_no_answer_is_always_best():
    gold = {"a": ["x"], "b": [], "c": []}
    predictions = dict.fromkeys(gold, "wrong")
    assert best_threshold(gold, predictions, {"a": 0.2, "b": 0.5, "c": 0.9}) == 0.0


@pytest.mark.parametrize(("gold", "prediction"), [
    (["the Beatles", "Beatles"], "The Beatles!"), (["in 1999", "1999"], "1999 or so"),
    (["a b c"], "b d"), (["x"], "")])
def test_answered_questions_score_as_in_squad_1(gold, prediction):
    assert scores_of_squad_1(gold, prediction) == pytest.approx(exact_and_f1(gold, prediction))


def test_gold_answers_of_articles_alone_score_otherwise_than_in_squad_1():
    """The one exception to the fact above."""
    assert scores_of_squad_1(["The", "Beatles"], "the") == (1, 0)
    assert scores_of_squad_1(["The"], "a") == (1, 0)
    assert exact_and_f1(["The", "Beatles"], "the") == (0, 0)
    assert exact_and_f1(["The"], "a") == (1, 1)


def scores_of_squad_1(gold, prediction):
    """Returns exact match and F1 of one question by Model Garden's copy of that evaluation."""
    found = squad_evaluate_v1_1.evaluate([{"paragraphs": [{"qas": [
        {"id": "q", "answers": [{"text": text} for text in gold]}]}]}], {"q": prediction})
    return found["exact_match"], found["final_f1"]
