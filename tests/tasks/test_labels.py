"""Scores of classes and numbers against values worked out by hand."""

import warnings

import numpy as np
import pytest

from electra_tf.tasks.kinds.texts import SCORERS, label_scores

# Two right "1", one right "0", one "0" called "1", one "1" called "0".
LABELS, PREDICTIONS = np.array([1, 1, 0, 0, 1]), np.array([1, 1, 0, 1, 0])


def test_two_classes():
    scores = label_scores(["accuracy", "f1", "mcc"], LABELS, PREDICTIONS)
    assert scores == pytest.approx({
        "accuracy": 3 / 5, "f1": 2 * 2 / (2 * 2 + 1 + 1),
        "mcc": (2 * 1 - 1 * 1) / (3 * 3 * 2 * 2) ** 0.5})


def test_three_classes():
    labels, predictions = np.array([0, 1, 2, 2]), np.array([0, 2, 2, 2])
    # F1 per class: 1, 0, and 2 * 2 / (2 * 2 + 1 + 0).
    assert label_scores(["accuracy", "f1_macro"], labels, predictions) == pytest.approx(
        {"accuracy": 3 / 4, "f1_macro": (1 + 0 + 4 / 5) / 3})


def test_numbers():
    labels, predictions = np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 8.0])
    # Deviations -1, 0, 1 and -3, -1, 4; the ranks agree.
    assert label_scores(["pearson", "spearman", "mean_squared_error"], labels, predictions) == (
        pytest.approx({"pearson": 7 / (2 * 26) ** 0.5, "spearman": 1.0,
                       "mean_squared_error": (0 + 1 + 25) / 3}))


def test_what_says_nothing_scores_nothing_and_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ones, numbers = np.ones(4, int), np.arange(4.0)
        assert label_scores(["mcc", "f1"], np.array([0, 1, 0, 1]), 0 * ones) == {
            "mcc": 0.0, "f1": 0.0}
        constant = label_scores(["pearson", "spearman"], numbers, np.ones(4))
    assert all(np.isnan(value) for value in constant.values())


def test_every_scorer_gives_its_best_to_the_truth():
    for name, scorer in SCORERS.items():
        assert scorer(LABELS, LABELS) == pytest.approx(0.0 if name.endswith("error") else 1.0)
