"""The time that steps take, and an estimate of the remaining time."""

import collections
import datetime
import re
import statistics
import time
from collections.abc import Callable, Mapping

SLOW_STEPS = 10
"""First steps, which are slower: on a CPU, the second took ten times as long as the third."""


class StepTimer:
    """A clock of steps and of the work between them; every call takes the time since the last.

    Calls of `steps` are counted together until they have `sample_seconds`. The estimate is the
    median of 31 samples, five minutes of short steps: it ignores a slow moment and follows a
    machine that stays slower.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, sample_seconds: float = 10.0):
        self._clock, self._sample_seconds = clock, sample_seconds
        self._begin = self._last = clock()
        self._open_steps, self._open_seconds = 0, 0.0
        self._first_apart, self._warm = False, False
        self._samples: collections.deque[float] = collections.deque(maxlen=31)
        self._other_work: dict[str, list[float]] = collections.defaultdict(list)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._begin

    def first_step(self) -> float:
        """Returns the seconds of the first step, which no estimate contains."""
        self._first_apart = True
        return self.lap()

    def steps(self, count: int) -> float:
        """Counts the time as that of `count` steps; returns its seconds.

        No estimate contains the first call, unless the first step was timed apart and the call is
        of `SLOW_STEPS` or more.
        """
        seconds = self.lap()
        if self._warm or self._first_apart and count >= SLOW_STEPS:
            self._open_steps += count
            self._open_seconds += seconds
            if self._open_steps and self._open_seconds >= self._sample_seconds:
                self._samples.append(self._open_seconds / self._open_steps)
                self._open_steps, self._open_seconds = 0, 0.0
        self._warm = True
        return seconds

    def lap(self) -> float:
        """Returns the seconds since the last call, which no estimate contains."""
        before, self._last = self._last, self._clock()
        return self._last - before

    def count_other_work(self, name: str) -> None:
        """Counts the time as that of one piece of other work, such as "checkpoint"."""
        self._other_work[name].append(self.lap())

    def remaining_seconds(self, steps: int, other_work: Mapping[str, int]) -> float | None:
        """Returns the estimated seconds of remaining steps; None before any step was timed.

        `other_work` are the remaining pieces of other work by name; 0 s each until one was seen.
        """
        # The seconds of a step: the median of full samples, or the mean of the first one.
        if self._samples:
            step = statistics.median(self._samples)
        elif self._open_steps:
            step = self._open_seconds / self._open_steps
        else:
            return None
        return steps * step + sum(
            count * statistics.median(self._other_work[name])
            for name, count in other_work.items() if self._other_work.get(name))


def duration(seconds: float) -> str:
    """Returns whole seconds as `h:mm:ss`, with days before it from 24 hours on.

    >>> duration(3723.9), duration(2 * 86400 + 60)
    ('1:02:03', '2d 0:01:00')
    """
    return re.sub(" days?, ", "d ", str(datetime.timedelta(seconds=int(seconds))))
