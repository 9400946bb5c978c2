"""Seconds of training until an AUC is reached for good."""

import pytest

from experiments.time_to_quality import points_of, seconds_to


@pytest.mark.parametrize(("points", "goal", "seconds"), [
    ([(10.0, 0.6), (20.0, 0.8)], 0.6, 10.0),
    ([(10.0, 0.6), (20.0, 0.8)], 0.55, 5.0),
    ([(10.0, 0.6), (20.0, 0.8)], 0.75, 17.5),
    ([(10.0, 0.6), (20.0, 0.8)], 0.81, None),
    ([(10.0, 0.8), (20.0, 0.6), (30.0, 0.7)], 0.65, 25.0),  # For good, or not at all.
    ([(10.0, 0.8), (20.0, 0.6), (30.0, 0.7)], 0.75, None),
    ([], 0.6, None),
])
def test_a_goal_between_two_evaluations_lies_on_the_line_between_them(points, goal, seconds):
    assert seconds_to(points, goal) == (None if seconds is None else pytest.approx(seconds))


def test_seconds_are_those_of_the_training_intervals():
    assert points_of([
        {"kind": "train", "step": 10, "tokens_per_second": 100.0},
        {"kind": "eval", "step": 10, "discriminator_auc": 0.6},
        {"kind": "train", "step": 15, "tokens_per_second": 50.0},
        {"kind": "checkpoint", "step": 15},
        {"kind": "train", "step": 20, "tokens_per_second": 25.0},
        {"kind": "eval", "step": 20, "discriminator_auc": 0.7},
    ], tokens_per_step=20) == [(2.0, 0.6), (8.0, 0.7)]
