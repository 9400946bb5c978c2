"""Measures systems by one protocol: they take turns, so a slow minute affects all of them.

A system is one setting of one implementation, a case is what it computes, a turn is what is timed.
"""

import contextlib
import dataclasses
import enum
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.harness.worker import Worker, WorkerFailed
from electra_tf.platform import machine


class Role(enum.StrEnum):
    """The role of a system in a comparison."""

    OURS = "ours"
    LIMIT = "limit"
    """Matrix multiplications alone: the limit that the others are compared with."""
    BASELINE = "baseline"


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """One setting of one implementation, run by a worker process."""

    name: str
    title: str
    module: str
    role: Role = Role.BASELINE
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields of the worker's first request, besides those of the case."""
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Environment variables of the process, besides the harness's own."""
    in_peers_environment: bool = False
    precision: str = ""
    """Data type, such as "bfloat16"; "" if it isn't a setting."""
    always: bool = False
    """True for a system that `--systems` cannot leave out."""


_LIBRARIES = {"ours": ("electra_tf", Role.OURS), "matmuls": ("matmuls", Role.LIMIT),
              "hugging_face": ("Hugging Face", Role.BASELINE),
              "model_garden": ("Model Garden", Role.BASELINE)}
"""Last part of a worker's module -> default title and role of its systems."""


def system(name: str, module: str, *, title: str = "", always: bool = False,
           variables: Mapping[str, str] | None = None, **settings: Any) -> System:
    """Returns the system of a worker's module below `benchmarks`; `settings` are for the worker."""
    library = module.rpartition(".")[2]
    default_title, role = _LIBRARIES[library]
    return System(
        name=name, title=title or default_title, module=f"benchmarks.{module}", role=role,
        settings=settings, precision=settings.get("options", settings).get("precision", ""),
        variables=variables or {}, always=always,
        in_peers_environment=library == "hugging_face" or settings.get("library") == "PyTorch")


@dataclasses.dataclass(kw_only=True)
class Measurement:
    """The replies of one system in one case; they grow with every turn."""

    system: System
    label: str
    """Title and setting, for the table."""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    accelerator: str = ""
    start_seconds: float | None = None
    """Seconds from the start of the process to the end of its first warm-up request."""
    warm_up: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    turns: dict[str, list[dict[str, Any]]] = dataclasses.field(default_factory=dict)
    """Turn's name -> replies, one for each round."""
    failure: str = ""
    """Reason of a failure, on one line; empty for a system that ran to the end."""

    def values(self, turn: str, field: str = "seconds") -> list[Any]:
        """Returns a field of the replies to a turn, [] if the system failed."""
        return [] if self.failure else [reply[field] for reply in self.turns.get(turn, [])]

    @property
    def peak_bytes(self) -> int:
        """Largest memory in any reply, in bytes."""
        replies = sum(self.turns.values(), self.warm_up)
        return max((reply["peak_bytes"] for reply in replies), default=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkCase:
    """A workload that all systems compute, and its number of repetitions."""

    name: str
    fields: Mapping[str, Any]
    """Fields of every worker's first request."""
    turns: Mapping[str, Mapping[str, Any]]
    """Name -> request. Every system gets each of them in every round."""
    warm_up: Sequence[Mapping[str, Any]] = ()
    """Requests before the rounds, which trace and compile every shape."""
    rounds: int


def has_room(largest_bytes: int) -> bool:
    """Returns True if a process 1.5 times as large as the largest so far fits into memory."""
    available = machine.entries(machine.MEMORY_INFO).get("MemAvailable")  # "16270528 kB"
    return available is None or int(available.split()[0]) * 1024 > 1.5 * largest_bytes + 1e9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turns:
    """The measurement of one case."""

    case: BenchmarkCase
    launch: Callable[[System], Worker]
    has_room: Callable[[int], bool] = has_room

    def measure(self, systems: Sequence[System]) -> list[Measurement]:
        """Measures all systems in turns, in as few groups as memory allows.

        Ours and the limits are part of every group: baselines of different groups are compared
        with the measurements of their own group.
        """
        waiting = sorted(systems, key=lambda system: system.role is Role.BASELINE)
        results: list[Measurement] = []
        group: list[tuple[Measurement, Worker]] = []
        with contextlib.ExitStack() as processes:
            while waiting:
                earlier = len(results)
                while waiting and (len(results) == earlier or self.has_room(
                        max(result.peak_bytes for result in results))):
                    system = waiting.pop(0)
                    results.append(Measurement(system=system, label=system.title))
                    group.append((results[-1], self._start(results[-1])))
                    processes.callback(group[-1][1].close)
                for number in range(self.case.rounds):
                    for turn in self.case.turns:
                        for result, worker in rotated(group, number):
                            self._take_turn(result, worker, turn)
                    self._log(f"round {number + 1} of {self.case.rounds}")
                for result, worker in group:
                    if result.system.role is Role.BASELINE:
                        worker.close()
                group = [pair for pair in group if pair[0].system.role is not Role.BASELINE]
        return results

    def measure_alone(self, systems: Sequence[System]) -> list[Measurement]:
        """Measures every turn in a new process that runs alone on the machine."""
        results = [Measurement(system=system, label=system.title) for system in systems]
        for number in range(self.case.rounds):
            for result in rotated(results, number):
                if not result.failure:
                    with contextlib.closing(self._start(result)) as worker:
                        for turn in self.case.turns:
                            self._take_turn(result, worker, turn)
            self._log(f"round {number + 1} of {self.case.rounds}")
        return results

    def _start(self, result: Measurement) -> Worker:
        """Starts and warms up a process of a measurement's system."""
        begin, worker = time.perf_counter(), self.launch(result.system)
        with self._recorded_failure(result, worker):
            hello = worker.ask({**self.case.fields, **result.system.settings})
            result.label = f"{result.system.title} {hello['label']}".strip()
            result.versions, result.accelerator = hello["versions"], hello["accelerator"]
            for request in self.case.warm_up:
                result.warm_up.append(worker.ask(request))
                if result.start_seconds is None:  # Compilers' caches shorten later starts.
                    result.start_seconds = time.perf_counter() - begin
                    self._log(f"{result.label}: started after {result.start_seconds:.0f} s")
        return worker

    def _take_turn(self, result: Measurement, worker: Worker, turn: str) -> None:
        if result.failure:
            return
        with self._recorded_failure(result, worker):
            reply = worker.ask(self.case.turns[turn])
            if not math.isfinite(reply.get("loss") or 0.0):
                raise WorkerFailed(f"the loss is {reply['loss']}")
            result.turns.setdefault(turn, []).append(reply)

    @contextlib.contextmanager
    def _recorded_failure(self, result: Measurement, worker: Worker) -> Iterator[None]:
        """Records the reason of a worker's failure; ends the worker, also at an interruption."""
        try:
            yield
        except KeyboardInterrupt:
            worker.close()
            raise
        except WorkerFailed as error:
            worker.close()
            result.failure = str(error)
            self._log(f"{result.label}: {result.failure}")

    def _log(self, line: str) -> None:
        print(f"{self.case.name}: {line}", file=sys.stderr, flush=True)


def rotated(items: Sequence, count: int) -> list:
    """Returns the items from number `count` on, then those before it."""
    start = count % len(items) if items else 0
    return [*items[start:], *items[:start]]
