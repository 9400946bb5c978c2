"""Estimates of the remaining time, with an invented clock."""

import pytest

from electra_tf.reporting.progress import StepTimer
from tests.support.clock import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def timer(clock):
    return StepTimer(clock)


def steps(timer, clock, seconds, count=1):
    clock.now += seconds
    timer.steps(count)


def test_the_first_steps_are_not_counted_in_estimates(timer, clock):
    clock.now += 60.0
    assert timer.first_step() == 60.0
    assert timer.remaining_seconds(10, {}) is None
    steps(timer, clock, 9.0)  # Still slow.
    assert timer.remaining_seconds(10, {}) is None
    steps(timer, clock, 4.0, count=2)
    assert timer.remaining_seconds(10, {}) == 20.0
    assert timer.elapsed == 73.0


def test_remaining_other_work_is_counted_in_estimates(timer, clock):
    for seconds in (7.0, 9.0):
        steps(timer, clock, 100.0, count=100)
        clock.now += seconds
        timer.count_other_work("checkpoint")
    assert timer.remaining_seconds(800, {"checkpoint": 8, "evaluation": 2}) == 800 + 8 * 8.0


def test_the_estimate_ignores_a_slow_moment_but_not_a_slower_machine(timer, clock):
    for _ in range(20):
        steps(timer, clock, 10.0, count=10)
    steps(timer, clock, 300.0, count=10)  # Thirty times slower, once.
    assert timer.remaining_seconds(1000, {}) == 1000.0
    for _ in range(20):
        steps(timer, clock, 30.0, count=10)
    assert timer.remaining_seconds(100, {}) == 300.0


def test_estimates_of_varying_steps_are_within_a_tenth(timer, clock):
    """Every fourth step takes ten times longer: 100,000 steps last 325,000 s."""
    total, worst = 100_000, 0.0
    for step in range(1, 2001):
        steps(timer, clock, 10.0 if step % 4 == 0 else 1.0)
        if step >= 16:
            left = timer.remaining_seconds(total - step, {})
            worst = max(worst, abs(left / ((total - step) * 3.25) - 1.0))
    assert worst < 0.1
