"""Takes systems in turns, so that a slow minute of the machine meets all of them."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from benchmarks.harness.turns import Asked, failing, rotated
from benchmarks.pretraining.systems import Role, System
from benchmarks.pretraining.workload import Workload

WARM_UP_STEPS = 2
"""After the first step and before the rounds."""


@dataclasses.dataclass(kw_only=True)
class Measurement:
    """What is known of one system in one case; it grows with every turn."""

    name: str
    role: Role
    label: str
    """Title and setting, for the table."""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    accelerator: str = ""
    """Its name; "" for the CPU."""
    start_seconds: float | None = None
    """From the start of the process to the end of its first step."""
    seconds: list[float] = dataclasses.field(default_factory=list)
    """Of every turn."""
    loss: float | None = None
    """Of the last step."""
    peak_bytes: int = 0
    failure: str = ""
    """Why it stopped, on one line; empty if it didn't."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Turns:
    """How the systems of one case are measured."""

    workload: Workload
    rounds: int
    steps: int
    """Per turn."""
    launch: Callable[[System], Asked]
    has_room: Callable[[int], bool]
    """Tells whether memory is left for one more system, given the largest so far, in bytes."""
    say: Callable[[str], None]

    def measure(self, systems: Sequence[System]) -> list[Measurement]:
        """Runs all systems in as few groups as memory allows.

        Ours and the rates are part of every group: peers of different groups are compared with
        what ran beside them.
        """
        waiting = sorted(systems, key=lambda system: system.role is Role.PEER)
        results: list[Measurement] = []
        group: dict[str, tuple[Measurement, Asked]] = {}
        with contextlib.ExitStack() as processes:
            while waiting:
                results += self._fill(group, waiting, results, processes)
                self._run_rounds(group)
                for measurement, worker in list(group.values()):
                    if measurement.role is Role.PEER:
                        worker.close()
                        del group[measurement.name]
        return results

    def _fill(self, group: dict[str, tuple[Measurement, Asked]], waiting: list[System],
              before: Sequence[Measurement], processes: contextlib.ExitStack) -> list[Measurement]:
        """Starts waiting systems, at least one, while there is room; returns theirs."""
        new: list[Measurement] = []
        while waiting and (not new or self.has_room(
                max(measurement.peak_bytes for measurement in [*before, *new]))):
            system = waiting.pop(0)
            measurement = Measurement(name=system.name, role=system.role, label=system.title)
            begun = time.perf_counter()
            worker = self.launch(system)
            processes.callback(worker.close)
            if self._start(system, measurement, worker, begun, [*before, *new]):
                new.append(measurement)
                if not measurement.failure:
                    group[system.name] = measurement, worker
        return new

    def _start(self, system: System, measurement: Measurement, worker: Asked, begun: float,
               others: Sequence[Measurement]) -> bool:
        """Imports, builds, warms up; False if the setting turns out to be measured already."""
        with self._failing(measurement, worker):
            hello = worker.ask({"workload": dataclasses.asdict(self.workload),
                                "setting": dataclasses.asdict(system.setting)})
            measurement.label = f"{system.title} {hello['label']}"
            measurement.versions = hello["versions"]
            if any(other.label == measurement.label for other in others):
                worker.close()
                return False
            worker.ask({"steps": 1})
            measurement.start_seconds = time.perf_counter() - begun
            self._note(measurement, worker.ask({"steps": WARM_UP_STEPS}))
            self.say(f"{measurement.label}: first step after {measurement.start_seconds:.0f} s")
        return True

    def _run_rounds(self, group: dict[str, tuple[Measurement, Asked]]) -> None:
        for index in range(self.rounds):
            for measurement, worker in rotated(list(group.values()), index):
                with self._failing(measurement, worker):
                    reply = worker.ask({"steps": self.steps})
                    measurement.seconds.append(reply["seconds"])
                    self._note(measurement, reply)
                if measurement.failure:
                    del group[measurement.name]
            self.say(f"round {index + 1} of {self.rounds}: {len(group)} systems")

    def _note(self, measurement: Measurement, reply: Mapping[str, Any]) -> None:
        measurement.loss = reply["loss"]
        measurement.peak_bytes = reply["peak_bytes"]

    def _failing(self, measurement: Measurement, worker: Asked) -> AbstractContextManager[None]:
        return failing(measurement, worker,
                       lambda reason: self.say(f"{measurement.label}: {reason}"))
