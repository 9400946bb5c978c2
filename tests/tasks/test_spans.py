"""Spans are right as a whole or not at all."""

import warnings

import pytest

from electra_tf.tasks.kinds.tagging import span_scores

TAGS = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O"]]


def test_a_span_counts_only_with_its_ends_and_its_type():
    # Of PER the end is wrong, LOC is right, ORG has the wrong type: 1 of 3 predicted, 1 of 3 true.
    predictions = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "O"]]
    assert span_scores(TAGS, predictions) == pytest.approx(
        {"precision": 1 / 3, "recall": 1 / 3, "f1": 1 / 3, "accuracy": 4 / 6})


def test_neighbours_of_one_type_are_two_spans():
    assert span_scores([["B-NP", "B-NP"]], [["B-NP", "I-NP"]]) == pytest.approx(
        {"precision": 0.0, "recall": 0.0, "f1": 0.0, "accuracy": 1 / 2})


def test_an_inside_without_a_beginning_begins_a_span():
    assert span_scores([["B-NP", "I-NP"]], [["I-NP", "I-NP"]])["f1"] == 1.0


def test_no_spans_at_all_is_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert span_scores(TAGS, [["O"] * 4, ["O"] * 2])["f1"] == 0.0
