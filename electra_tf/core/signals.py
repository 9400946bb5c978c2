"""SIGTERM and Ctrl-C: the first signal ends the work in order, the second one at once.

    with Interrupts():                  # Around a program: a signal raises `Interrupted`.
        ...
        with StopRequest() as stop:     # Around work that ends by itself after a signal.
            while stop.number is None:
                work()

Python calls no handlers while TensorFlow computes or waits. Therefore a thread reads signals too,
and ends the process if the work does not react in time.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)
_SAME_REQUEST_SECONDS = 0.5
"""Signals this close together are one request: `timeout` and some launchers send each one twice."""
INTERRUPT_SECONDS = 20.0
"""Longer than a step of fine-tuning, shorter than the 30 s after which most schedulers kill."""


class Interrupted(KeyboardInterrupt):
    """The end of the work by a signal. The message is the line to print; empty for none."""

    def __init__(self, number: int, line: str = "interrupted."):
        super().__init__(line)
        self.number = number  # Beam calls __init__ with the message as `number`.


class StopRequest:
    """A context that records the first signal, and ends the process at the second.

    Its handlers stay after a signal, because a second one may end a process that cleans up. Enter
    it in the main thread, after other code has set its handlers. `grace_seconds` after the first
    signal, unless None, the process prints the line `late` and ends.
    """

    def __init__(self, *, grace_seconds: float | None = None, late: str = ""):
        self.number: int | None = None
        """The first signal."""
        self._grace_seconds, self._late = grace_seconds, late

    def __enter__(self) -> "StopRequest":
        self._reads, self._writes = os.pipe()
        os.set_blocking(self._writes, False)
        self._fd_before = signal.set_wakeup_fd(self._writes, warn_on_full_buffer=False)
        # Also where SIGINT is ignored, as a shell's background jobs inherit it.
        self._before = {number: signal.signal(number, self._in_main_thread) for number in STOPPING}
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        # After a signal, the handlers stay for the second one.
        if self.number is not None:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        # A zero ends the thread, which otherwise waits for a signal.
        os.write(self._writes, b"\0")
        self._watcher.join()
        os.close(self._reads)
        os.close(self._writes)

    def _in_main_thread(self, number: int, _frame: FrameType | None) -> None:
        self.number = self.number or number

    def _watch(self) -> None:
        """Reads the numbers that the operating system's handler writes, until a zero."""
        first = None
        while number := os.read(self._reads, 1)[0]:
            # Signals of other handlers arrive here too, such as a server's.
            if number not in STOPPING or signal.getsignal(number) != self._in_main_thread:
                continue
            # The first signal is recorded and has a grace period, a later one ends the process.
            if first is None:
                first = time.monotonic()
                self.number = self.number or number
                if seconds := self._grace_seconds:
                    timer = threading.Timer(seconds, self._end_late)
                    timer.daemon = True
                    timer.start()
            elif time.monotonic() - first > _SAME_REQUEST_SECONDS:
                _end_at_once(number, "ended at once.")

    def _end_late(self) -> None:
        if self._grace_seconds:
            _end_at_once(self.number, self._late)


class Interrupts(StopRequest):
    """A context whose first signal raises `Interrupted` in the main thread.

    The process ends after `INTERRUPT_SECONDS` if a library keeps the main thread from running.
    """

    def __init__(self):
        super().__init__(grace_seconds=INTERRUPT_SECONDS, late="interrupted.")

    def _in_main_thread(self, number: int, _frame: FrameType | None) -> None:
        if self._grace_seconds is not None:
            self._grace_seconds = None  # Cleaning up has no time limit.
            self.number = number
            raise Interrupted(number)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        # TensorFlow turns an `Interrupted` that is raised while it traces into one of these.
        if self.number is not None and isinstance(error[1], RuntimeError | SystemError):
            raise Interrupted(self.number) from None


@contextlib.contextmanager
def default_signal_handlers() -> Iterator[None]:
    """Lets signals end the process while TensorFlow waits, up to an hour, for other workers."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_at_once(number: int, line: str) -> None:
    os.write(2, f"{line}\n".encode())  # A stopped thread may hold the lock of `sys.stderr`.
    os._exit(128 + number)
