"""The benchmark's side of a worker: a process that is stopped except in its turn."""

import contextlib
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

ROOT = pathlib.Path(__file__).parents[2]
_ERROR = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception)\b.*)")
_LONGEST_REASON = 240


class WorkerFailed(Exception):
    """A worker that died or didn't answer in time; the message is the reason, on one line."""


class Worker:
    """One process that answers JSON lines with JSON lines (see `worker.py`).

    Between requests its whole process group is stopped (SIGSTOP): threads that wait actively, as
    OpenMP's do, take no time from the system whose turn it is.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], timeout: float):
        self._timeout = timeout
        self._errors = tempfile.TemporaryFile()
        # In a group of its own, signals also reach its children, and Ctrl-C reaches the benchmark
        # alone. If the benchmark is killed, the kernel wakes the orphaned group and hangs it up.
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, process_group=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(
            target=_pump, args=(self._process.stdout, self._lines), daemon=True).start()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Wakes the worker for one request and returns its reply.

        Raises:
            WorkerFailed: it died or took longer than the timeout.
        """
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):  # It is dead: there will be no reply.
            print(json.dumps(request), file=self._process.stdin, flush=True)
        reply = self._reply()
        self._signal(signal.SIGSTOP)
        return reply

    def close(self) -> None:
        """Kills the process and its children; a second call does nothing."""
        if self._errors.closed:
            return
        self._signal(signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._errors.close()

    def _reply(self) -> dict[str, Any]:
        try:
            while (line := self._lines.get(timeout=self._timeout)) is not None:
                if line.startswith("{"):
                    return json.loads(line)
        except queue.Empty:
            raise WorkerFailed(f"no answer within {self._timeout:g} s") from None
        status = self._process.wait()
        self._errors.seek(0)
        raise WorkerFailed(reason_of_death(status, self._errors.read().decode(errors="replace")))

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def reason_of_death(status: int, errors: str) -> str:
    """Returns one line: the last error with the line after it, or else the last line of stderr.

    Args:
        status: as `subprocess` reports it, negative for a signal.
        errors: everything that the process wrote to stderr.
    """
    if status < 0:
        name = signal.Signals(-status).name
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    starts = [index for index, line in enumerate(lines) if _ERROR.match(line)]
    if starts:
        first = _ERROR.match(lines[starts[-1]]).group(1)
        return " ".join([first, *lines[starts[-1] + 1:starts[-1] + 2]])[:_LONGEST_REASON]
    return lines[-1][:_LONGEST_REASON] if lines else f"ended with status {status}"


def _pump(stream: TextIO, lines: queue.Queue) -> None:
    """Passes lines on until the stream ends; then None."""
    for line in stream:
        lines.put(line)
    lines.put(None)
