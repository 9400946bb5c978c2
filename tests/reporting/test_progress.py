"""Estimates of the remaining time, with a made-up clock."""

import pytest

from electra_tf.reporting.progress import Pace, duration


def test_durations_count_days_beyond_24_hours():
    assert list(map(duration, (59.9, 86399, 86400, 4 * 86400 + 3 * 3600 + 62))) == [
        "0:00:59", "23:59:59", "1d 0:00:00", "4d 3:01:02"]


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pace(clock):
    return Pace(clock)


def steps(pace, clock, seconds, count=1):
    clock.now += seconds
    pace.steps(count)


def test_compiling_counts_for_no_later_step(pace, clock):
    clock.now += 60.0
    assert pace.first_step() == 60.0
    assert pace.seconds_left(10, {}) is None
    steps(pace, clock, 9.0)  # Still slow.
    assert pace.seconds_left(10, {}) is None
    steps(pace, clock, 4.0, count=2)
    assert pace.seconds_left(10, {}) == 20.0
    assert pace.elapsed == 73.0


def test_without_a_first_step_apart_the_first_call_counts_for_no_later_step(pace, clock):
    steps(pace, clock, 70.0, count=20)
    assert pace.seconds_left(10, {}) is None
    steps(pace, clock, 9.0, count=9)
    assert pace.seconds_left(10, {}) == 10.0


def test_other_work_counts_as_often_as_it_is_still_to_come(pace, clock):
    for seconds in (7.0, 9.0):
        steps(pace, clock, 100.0, count=100)
        clock.now += seconds
        pace.aside("checkpoint")
    assert pace.seconds_left(800, {"checkpoint": 8, "evaluation": 2}) == 800 + 8 * 8.0


def test_a_slow_moment_does_not_move_the_estimate_and_a_slower_machine_does(pace, clock):
    for _ in range(20):
        steps(pace, clock, 10.0, count=10)
    steps(pace, clock, 300.0, count=10)  # Thirty times slower, once.
    assert pace.seconds_left(1000, {}) == 1000.0
    for _ in range(20):
        steps(pace, clock, 30.0, count=10)
    assert pace.seconds_left(100, {}) == 300.0


def test_steps_that_vary_give_an_estimate_that_falls_evenly(pace, clock):
    """Every fourth step takes ten times longer: 100,000 steps last 325,000 s."""
    total, worst = 100_000, 0.0
    for step in range(1, 2001):
        steps(pace, clock, 10.0 if step % 4 == 0 else 1.0)
        if step >= 16:
            left = pace.seconds_left(total - step, {})
            worst = max(worst, abs(left / ((total - step) * 3.25) - 1.0))
    assert worst < 0.1
