"""Runs a system in a process: requests on its stdin, replies on its stdout, in JSON.

    python -m benchmarks.harness.worker benchmarks.pretraining.ours
    > {"workload": {...}, "setting": {...}}
    < {"label": "bfloat16, XLA off", "versions": {"TensorFlow": "2.20.0"}, ...}
    > {"steps": 1}
    < {"seconds": 21.4, "cpu_seconds": 42.1, "peak_bytes": 1500000000, "loss": 45.1}

The module's `prepare` takes the first request's fields, the case and the system's settings; every
other request asks for a turn. This module needs only the standard library.
"""

import contextlib
import ctypes
import dataclasses
import importlib
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from electra_tf.platform import native_libraries
from electra_tf.platform.machine import peak_memory_bytes

ROOT = pathlib.Path(__file__).parents[2]
_PR_SET_PDEATHSIG = 1  # In Linux' prctl.h.
_MAX_REASON = 240
"""Characters of a failure's reason."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ready:
    """A system that is ready for its turns."""

    label: str = ""
    """Name of the setting in the system's terms, with "auto" resolved."""
    turn: Callable[..., Mapping[str, Any] | None]
    """Takes a request's fields and returns further fields of the reply."""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Library -> version."""
    accelerator: str = ""
    """The driver's name of the accelerator; "" for the CPU."""
    peak_bytes: Callable[[], int] = peak_memory_bytes
    """Returns the largest memory so far; on an accelerator, that of its allocator."""


def serve(prepare: Callable[..., Ready]) -> None:
    """Answers requests until stdin closes."""
    def reply(**fields: Any) -> None:
        print(f"\n{json.dumps(fields)}", flush=True)  # A library may have printed half a line.

    requests = (json.loads(line) for line in sys.stdin)
    ready = prepare(**next(requests))
    reply(label=ready.label, versions=ready.versions, accelerator=ready.accelerator)
    for request in requests:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        result = ready.turn(**request) or {}
        reply(seconds=time.perf_counter() - begin, cpu_seconds=time.process_time() - cpu_begin,
              peak_bytes=ready.peak_bytes(), **result)


class WorkerFailed(Exception):
    """The end of a worker or its timeout; the message is the reason, on one line."""


class Worker:
    """The benchmark's side of a process that calls `serve`.

    Between requests its whole process group is stopped (SIGSTOP): threads that wait actively, as
    OpenMP's do, take no time from the system whose turn it is.
    """

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str], timeout: float):
        self._timeout = timeout
        self._errors = tempfile.TemporaryFile()
        # In a group of its own, signals also reach its children, and Ctrl-C reaches the benchmark
        # alone.
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, process_group=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors)
        self._lines: queue.Queue[str | None] = queue.Queue()  # Of stdout; None at its end.

        def queue_lines() -> None:
            for line in self._process.stdout:
                self._lines.put(line)
            self._lines.put(None)

        threading.Thread(target=queue_lines, daemon=True).start()

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Wakes the worker for one request and returns its reply.

        Raises:
            WorkerFailed: it ended or took longer than the timeout.
        """
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):  # It has ended: no reply follows.
            print(json.dumps(request), file=self._process.stdin, flush=True)
        try:
            while (line := self._lines.get(timeout=self._timeout)) is not None:
                if line.startswith("{"):
                    self._signal(signal.SIGSTOP)
                    return json.loads(line)
        except queue.Empty:
            raise WorkerFailed(f"no answer within {self._timeout:g} s") from None
        status = self._process.wait()
        self._errors.seek(0)
        raise WorkerFailed(reason_of_death(status, self._errors.read().decode(errors="replace")))

    def close(self) -> None:
        """Kills the process and its children; a second call has no effect."""
        if self._errors.closed:
            return
        self._signal(signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._errors.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def reason_of_death(status: int, errors: str) -> str:
    """Returns a signal's name, stderr's last error with the line after it, or its last line."""
    if status < 0:
        name = signal.Signals(-status).name
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    for index in reversed(range(len(lines))):
        if error := re.match(r"(?:\w+\.)*(\w+(?:Error|Exception)\b.*)", lines[index]):
            return " ".join([error[1], *lines[index + 1:index + 2]])[:_MAX_REASON]
    return lines[-1][:_MAX_REASON] if lines else f"ended with status {status}"


def end_with_parent(parent: int) -> None:
    """Makes Linux kill this process as soon as the benchmark, its `parent`, has ended.

    Elsewhere it ends after its current request, when stdin closes.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It ended before.
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        end_with_parent(int(sys.argv[2]))
    native_libraries.configure()
    serve(importlib.import_module(sys.argv[1]).prepare)
