"""The progress line of a run."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
    """The content of a progress line: means over the interval since the last line."""

    step: int
    """Steps finished."""
    num_steps: int
    """Steps of the whole run."""
    loss: float
    """The loss that is minimised, in weighted nats."""
    losses: Mapping[str, float]
    """Its named parts, unweighted, in nats: {"generator": 5.4, "discriminator": 0.14}."""
    learning_rate: float
    seconds_elapsed: float
    """Since this process started training."""
    peak_memory_bytes: int
    """Largest resident memory of this process so far."""
    tokens_per_second: float | None = None
    """Over all devices, padding included; None before a step was timed."""
    peak_fraction: float | None = None
    """Model FLOPs over the devices' peak, in [0, 1]; None where the peak is unknown."""
    seconds_left: float | None = None
    """Estimated; None before the first interval is timed."""


def progress_line(progress: Progress) -> str:
    """Returns one line without unknown columns; columns are as wide at every step of a run.

    Example:
        >>> print(progress_line(Progress(
        ...     step=1200, num_steps=10000, loss=12.345,
        ...     losses={"generator": 5.432, "discriminator": 0.1383}, learning_rate=3.2e-4,
        ...     tokens_per_second=4210, peak_fraction=0.37, peak_memory_bytes=2_210_000_000,
        ...     seconds_left=2530, seconds_elapsed=345)))
        step  1,200/10,000  loss 12.345  generator  5.432  discriminator 0.1383  lr 3.20e-04  \
  4,210 tok/s  37 % of peak    2.2 GB  elapsed 0:05:45  ETA 0:42:10
    """
    total = f"{progress.num_steps:,}"
    columns = [f"step {progress.step:>{len(total)},}/{total}", f"loss {_number(progress.loss)}"]
    columns += [f"{name} {_number(value)}" for name, value in progress.losses.items()]
    columns.append(f"lr {progress.learning_rate:.2e}")
    if progress.tokens_per_second is not None:
        columns.append(f"{progress.tokens_per_second:>7,.0f} tok/s")
    if progress.peak_fraction is not None:
        columns.append(f"{progress.peak_fraction:>3.0%} of peak".replace("%", " %"))
    columns.append(f"{progress.peak_memory_bytes / 1e9:>5.1f} GB")
    columns.append(f"elapsed {duration(progress.seconds_elapsed)}")
    if progress.seconds_left is not None:
        columns.append(f"ETA {duration(progress.seconds_left)}")
    return "  ".join(columns)


def duration(seconds: float) -> str:
    """Returns whole seconds as `h:mm:ss`, with days before it from 24 hours on.

    Example:
        >>> duration(3723.9)
        '1:02:03'
        >>> duration(2 * 86400 + 60)
        '2d 0:01:00'
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour}:{minute:02}:{second:02}"
    return f"{days}d {clock}" if days else clock


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1 else f"{value:>6.3f}"
