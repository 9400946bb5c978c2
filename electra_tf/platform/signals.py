"""SIGTERM and Ctrl-C: work ends in order, and at once if it is asked a second time.

    with Interrupts():                  # Around a program: a signal raises `Interrupted`.
        ...
        with StopRequest() as stop:     # Around work that has to come to a good place first.
            while stop.number is None:
                work()

Python calls its handlers in the main thread, between two of its own instructions: not while
TensorFlow compiles, computes or waits for another machine. So a thread looks at signals too, and
ends the process if a second one comes or if the first isn't heeded in time.
"""

import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)
SAME_REQUEST_SECONDS = 0.5
"""Signals so close together are one request: `timeout` and some launchers send each one twice."""

DEAF_SECONDS = 20.0
"""`Interrupts` ends the process if its main thread hasn't run so long after a signal: longer than a
step of fine-tuning, shorter than the 30 s after which most schedulers kill."""


class Interrupted(KeyboardInterrupt):
    """A signal ended the work. The message is the line to print; empty for none."""

    def __init__(self, number: int, line: str = "interrupted."):
        super().__init__(line)
        self.number = number

    @property
    def status(self) -> int:
        """What the process exits with, as a shell reports signals: 130 for Ctrl-C, 143."""
        return 128 + self.number


class StopRequest:
    """Notes the first signal while it is open, and ends the process at the second.

    Once a signal came it stays in force: the process is about to end, and a second signal has to
    end it also while it cleans up. Open it in the main thread, after whatever else sets handlers.
    """

    def __init__(self, *, grace_seconds: float | None = None, late: str = ""):
        """Takes how long the work may take to heed a signal.

        Args:
            grace_seconds: the process ends so long after the first signal; None for never.
            late: the line that is printed then.
        """
        self.number: int | None = None
        """Of the first signal; None as long as there is none."""
        self._grace_seconds, self._late = grace_seconds, late

    def __enter__(self) -> "StopRequest":
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._writes, False)
        self._fd_before = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        # Also where SIGINT is ignored, as a shell's background jobs inherit it.
        self._before = {number: signal.signal(number, self._in_main_thread)
                        for number in STOPPING}
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.number is None:
            self.close()

    def close(self) -> None:
        """Restores what was in force before, also after a signal."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.write(self._writes, b"\0")
        self._watcher.join()
        os.close(self._reads)
        os.close(self._writes)

    def _in_main_thread(self, number: int, _frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number

    def _watch(self) -> None:
        """Reads the numbers that the operating system's handler writes, until a zero."""
        first = None
        while True:
            left = None
            if first is not None and self._grace_seconds is not None:
                left = max(0.0, first + self._grace_seconds - time.monotonic())
            if not select.select([self._reads], [], [], left)[0]:
                if self._grace_seconds is None:
                    continue
                _end_at_once(self.number, self._late)
            for number in os.read(self._reads, 64):
                if not number:
                    return
                if not self._is_ours(number):
                    continue
                if first is None:
                    first = time.monotonic()
                    self._noted(number)
                elif time.monotonic() - first > SAME_REQUEST_SECONDS:
                    _end_at_once(number, "ended at once.")

    def _noted(self, number: int) -> None:
        if self.number is None:
            self.number = number

    def _is_ours(self, number: int) -> bool:
        """Other handlers' signals arrive here too: a server's inside of `Interrupts`."""
        return number in STOPPING and signal.getsignal(number) == self._in_main_thread


class Interrupts(StopRequest):
    """Raises `Interrupted` in the main thread at the first signal.

    If that thread doesn't come to it, being inside of a library, the process ends soon after.
    """

    def __init__(self):
        super().__init__(grace_seconds=DEAF_SECONDS, late="interrupted.")

    def _in_main_thread(self, number: int, _frame: FrameType | None) -> None:
        if self._grace_seconds is not None:
            self._grace_seconds = None  # It came to it: cleaning up may take its time.
            self.number = number
            raise Interrupted(number)


@contextlib.contextmanager
def left_to_the_system() -> Iterator[None]:
    """Lets a signal end the process at once, without a word, while no Python can run.

    TensorFlow keeps all of Python waiting while it waits for other workers to join, up to an hour,
    and takes SIGTERM for itself there, only to note it; Ctrl-C it leaves alone. Afterwards the
    handlers are those that were there before.
    """
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(number: int, line: str) -> None:
    """Ends the process from any thread, whatever the others do."""
    if line:
        os.write(2, f"{line}\n".encode())  # `sys.stderr` may be locked by a stopped thread.
    os._exit(128 + number)
