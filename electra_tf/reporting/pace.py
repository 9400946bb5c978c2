"""How long steps take, and from that how long a run still will."""

import collections
import statistics
import time
from collections.abc import Callable, Mapping

SAMPLE_SECONDS = 10.0
SAMPLES = 31
"""The estimate looks at so many samples, each of at least `SAMPLE_SECONDS` of steps: five minutes
of short steps. It is their median, so that a slow moment doesn't count, and follows a machine that
stays slower after half of that."""


class Pace:
    """Measures steps and what is done between them, each apart.

    Every call takes the time since the call before.

    Example:
        pace = Pace()
        ...                       # Tracing, compiling and one step.
        pace.first_step()
        ...                       # 100 steps.
        pace.steps(100)
        ...                       # A checkpoint.
        pace.aside("checkpoint")
        pace.seconds_left(400, {"checkpoint": 4})
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        """Takes the clock, in seconds."""
        self._clock = clock
        self._began = self._last = clock()
        self._open_steps, self._open_seconds = 0, 0.0
        self._samples: collections.deque[float] = collections.deque(maxlen=SAMPLES)
        self._asides: dict[str, list[float]] = collections.defaultdict(list)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    def first_step(self) -> float:
        """Leaves the time of the first step out; returns its seconds."""
        return self._lap()

    def steps(self, count: int) -> float:
        """Takes the time as that of `count` steps, at least 1; returns its seconds."""
        seconds = self._lap()
        self._open_steps += count
        self._open_seconds += seconds
        if self._open_seconds >= SAMPLE_SECONDS:
            self._samples.append(self._open_seconds / self._open_steps)
            self._open_steps, self._open_seconds = 0, 0.0
        return seconds

    def aside(self, name: str) -> None:
        """Takes the time as that of one piece of other work, like "checkpoint"."""
        self._asides[name].append(self._lap())

    def seconds_left(self, steps: int, asides: Mapping[str, int]) -> float | None:
        """Returns an estimate of what remains; None before any step was timed.

        Args:
            steps: to go.
            asides: how often each other work is still to come; what hasn't been seen takes no time.
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
        return self._open_seconds / self._open_steps if self._open_steps else None

    def _lap(self) -> float:
        before, self._last = self._last, self._clock()
        return self._last - before
