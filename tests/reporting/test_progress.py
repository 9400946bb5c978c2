"""The progress line keeps its columns; estimates of the remaining time, with a made-up clock."""

import math

import pytest

from electra_tf.reporting.progress import Pace, duration, progress_line

MEANS = {"loss": 12.345, "generator_loss": 5.432, "discriminator_loss": 0.1383,
         "learning_rate": 3.2e-4}


def line(**changes):
    given = {"means": MEANS, "step": 1200, "num_steps": 10000, "tokens_per_second": 4210.4,
             "peak_fraction": 0.37, "seconds_left": 2530, "seconds_elapsed": 345,
             "peak_memory_bytes": 2_210_000_000} | changes
    return progress_line(**given)


def test_what_is_unknown_is_left_out_and_columns_stay_where_they_are_through_a_run():
    assert line(peak_fraction=None, seconds_left=None, tokens_per_second=None).endswith(
        "lr 3.20e-04    2.2 GB  elapsed 0:05:45")
    first = line(step=10, tokens_per_second=98.2, peak_fraction=0.05, means={
        "loss": 45.012, "generator_loss": 10.33, "discriminator_loss": 0.6931,
        "learning_rate": 1e-6})
    last = line(step=10000, means=MEANS | {"generator_loss": 2.1, "discriminator_loss": 0})
    assert "  37 % of peak  " in line() and "   5 % of peak  " in first
    assert len({len(each) for each in (first, line(), last)}) == 1
    assert len({each.index("tok/s") for each in (first, line(), last)}) == 1
    assert "loss    nan" in line(means=MEANS | {"loss": math.nan})


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
