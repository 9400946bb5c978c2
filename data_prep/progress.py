"""A progress line on stderr while text is being read."""

import sys
import time

_INTERVAL = 10.0
"""Seconds between lines."""


class ByteProgress:
    """A progress line, printed at most every ten seconds; `size` is the input in bytes."""

    def __init__(self, size: int):
        self._size = size
        self._start = self._last = time.monotonic()

    def update(self, position: int, amounts: dict[str, int]) -> None:
        """Prints a line if one is due: bytes of input read, and amounts made by name."""
        now = time.monotonic()
        if now - self._last < _INTERVAL or not position:
            return
        self._last = now
        seconds = now - self._start
        left = seconds * (self._size - position) / position
        shown = ", ".join(f"{number:,} {name} ({number / seconds:,.0f}/s)"
                          for name, number in amounts.items())
        print(f"{100 * position / self._size:3.0f} % read, {shown}, "
              f"about {left:.0f} s left", file=sys.stderr, flush=True)
