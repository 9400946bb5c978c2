"""The line of progress reads as promised and keeps its columns."""

import dataclasses

from electra_tf.reporting.progress import Progress, duration, progress_line

PROGRESS = Progress(
    step=1200, num_steps=10000, loss=12.345, losses={"generator": 5.432, "discriminator": 0.1383},
    learning_rate=3.2e-4, tokens_per_second=4210.4, peak_fraction=0.37, seconds_left=2530,
    seconds_elapsed=345, peak_memory_bytes=2_210_000_000)


def test_the_line_names_every_quantity_with_its_unit():
    assert progress_line(PROGRESS) == (
        "step  1,200/10,000  loss 12.345  generator  5.432  discriminator 0.1383  lr 3.20e-04  "
        "  4,210 tok/s  37 % of peak    2.2 GB  elapsed 0:05:45  ETA 0:42:10")


def test_what_is_unknown_is_left_out():
    line = progress_line(dataclasses.replace(
        PROGRESS, peak_fraction=None, seconds_left=None, tokens_per_second=None))
    assert line.endswith("lr 3.20e-04    2.2 GB  elapsed 0:05:45")


def test_columns_stay_where_they_are_through_a_run():
    first = dataclasses.replace(
        PROGRESS, step=10, loss=45.012, losses={"generator": 10.33, "discriminator": 0.6931},
        learning_rate=1e-6, tokens_per_second=98.2, peak_fraction=0.05)
    last = dataclasses.replace(PROGRESS, step=10000, losses={"generator": 2.1, "discriminator": 0})
    assert len({len(progress_line(line)) for line in (first, PROGRESS, last)}) == 1
    assert len({progress_line(line).index("tok/s") for line in (first, PROGRESS, last)}) == 1


def test_durations_count_days_beyond_24_hours():
    assert duration(59.9) == "0:00:59"
    assert duration(86399) == "23:59:59"
    assert duration(86400) == "1d 0:00:00"
    assert duration(4 * 86400 + 3 * 3600 + 62) == "4d 3:01:02"


def test_a_loss_that_is_not_a_number_is_still_shown():
    assert "loss    nan" in progress_line(dataclasses.replace(PROGRESS, loss=float("nan")))
