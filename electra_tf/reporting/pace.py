"""The time that steps take, and an estimate of a run's remaining time."""

import collections
import statistics
import time
from collections.abc import Callable, Mapping

SAMPLE_SECONDS = 10.0
FEW_STEPS = 10
"""Steps that are still slower: the second took ten times as long as the third on a CPU."""
SAMPLES = 31
"""Samples of `SAMPLE_SECONDS` or more whose median is the estimate: five minutes of short steps. It
ignores a slow moment and follows a machine that stays slower."""


class Pace:
    """A clock of steps and of the work between them; every call takes the time since the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        """Takes the clock, in seconds."""
        self._clock = clock
        self._began = self._last = clock()
        self._open_steps, self._open_seconds = 0, 0.0
        self._first_apart = False
        self._first_lap: float | None = None
        """Seconds of a step at the start: the estimate until others were timed."""
        self._samples: collections.deque[float] = collections.deque(maxlen=SAMPLES)
        self._asides: dict[str, list[float]] = collections.defaultdict(list)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    def first_step(self) -> float:
        """Returns the seconds of the first step, which no estimate contains."""
        self._first_apart = True
        return self._lap()

    def steps(self, count: int) -> float:
        """Counts the time as that of `count` steps, at least 1; returns its seconds.

        The first call counts only until the second, as it contains the start, unless the first
        step was timed apart and the call is of `FEW_STEPS` or more.
        """
        seconds = self._lap()
        if self._first_lap is None:
            self._first_lap = seconds / count
            if not self._first_apart or count < FEW_STEPS:
                return seconds
        self._open_steps += count
        self._open_seconds += seconds
        if self._open_seconds >= SAMPLE_SECONDS:
            self._samples.append(self._open_seconds / self._open_steps)
            self._open_steps, self._open_seconds = 0, 0.0
        return seconds

    def skip(self) -> None:
        """Leaves out the time since the last call, which no later work needs again."""
        self._lap()

    def aside(self, name: str) -> None:
        """Counts the time as that of one piece of other work, such as "checkpoint"."""
        self._asides[name].append(self._lap())

    def seconds_left(self, steps: int, asides: Mapping[str, int]) -> float | None:
        """Returns the estimated seconds of remaining steps; None before any step was timed.

        `asides` are the remaining pieces of other work by name; 0 s each until one was seen.
        """
        step = self._seconds_per_step()
        if step is None:
            return None
        return steps * step + sum(
            count * statistics.median(self._asides[name])
            for name, count in asides.items() if self._asides.get(name))

    def _seconds_per_step(self) -> float | None:
        if self._samples:
            return statistics.median(self._samples)
        if self._open_steps:
            return self._open_seconds / self._open_steps
        return None if self._first_apart else self._first_lap

    def _lap(self) -> float:
        before, self._last = self._last, self._clock()
        return self._last - before
