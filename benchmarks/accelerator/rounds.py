"""Takes systems in turns, each turn a process that has the card to itself."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence

from benchmarks.harness.process import WorkerFailed
from benchmarks.harness.turns import Asked, failing, rotated
from benchmarks.pretraining.interleave import Measurement
from benchmarks.pretraining.systems import System
from benchmarks.pretraining.workload import Workload

WARM_UP_STEPS = 10
"""After the first step of every turn: a card's clocks rise, CUDA graphs are recorded."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rounds:
    """How the systems of one case are measured."""

    workload: Workload
    rounds: int
    steps: int
    """Per turn."""
    launch: Callable[[System], Asked]
    say: Callable[[str], None]

    def measure(self, systems: Sequence[System]) -> list[Measurement]:
        """Runs all systems; one that failed has no further turns."""
        results = {system.name: Measurement(name=system.name, role=system.role, label=system.title)
                   for system in systems}
        for index in range(self.rounds):
            for system in rotated(systems, index):
                if not results[system.name].failure:
                    self._turn(system, results[system.name])
            self.say(f"round {index + 1} of {self.rounds}")
        return list(results.values())

    def _turn(self, system: System, measurement: Measurement) -> None:
        begun = time.perf_counter()
        worker = self.launch(system)
        with contextlib.closing(worker), failing(
                measurement, worker, lambda reason: self.say(f"{measurement.label}: {reason}")):
            hello = worker.ask({"workload": dataclasses.asdict(self.workload),
                                "setting": dataclasses.asdict(system.setting)})
            measurement.label = f"{system.title} {hello['label']}"
            measurement.versions = hello["versions"]
            measurement.accelerator = hello["accelerator"]
            worker.ask({"steps": 1})
            if measurement.start_seconds is None:  # Later ones find what compilers kept.
                measurement.start_seconds = time.perf_counter() - begun
                self.say(f"{measurement.label}: first step after "
                         f"{measurement.start_seconds:.0f} s")
            worker.ask({"steps": WARM_UP_STEPS})
            reply = worker.ask({"steps": self.steps})
            if reply["loss"] is not None and not math.isfinite(reply["loss"]):
                raise WorkerFailed(f"the loss is {reply['loss']}")
            measurement.seconds.append(reply["seconds"])
            measurement.loss, measurement.peak_bytes = reply["loss"], max(
                measurement.peak_bytes, reply["peak_bytes"])
