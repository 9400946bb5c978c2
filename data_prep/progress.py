"""A progress line on stderr while text is being read."""

import sys
import time

_INTERVAL = 10.0
"""Seconds between lines."""


class ByteProgress:
    """Prints how far a job is, at most every ten seconds.

    Args:
        size: bytes of input in all.
    """

    def __init__(self, size: int):
        self._size = size
        self._start = self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._start

    def update(self, position: int, amounts: dict[str, int]) -> None:
        """Prints a line if one is due.

        Args:
            position: bytes of input read.
            amounts: what to show beside it, name -> number made so far.
        """
        now = time.monotonic()
        if now - self._last < _INTERVAL or not position:
            return
        self._last = now
        seconds = self.seconds
        left = seconds * (self._size - position) / position
        shown = ", ".join(f"{number:,} {name} ({number / seconds:,.0f}/s)"
                          for name, number in amounts.items())
        print(f"{100 * position / self._size:3.0f} % read, {shown}, "
              f"about {left:.0f} s left", file=sys.stderr, flush=True)
