"""Worker: as `ours`, but its one step is a profiler's trace of several.

Its arguments are the directory of steps and the one that the trace goes to, which TensorBoard,
XProf and ui.perfetto.dev read.
"""

import dataclasses
import functools
import pathlib
import sys

import jax

from benchmarks.accelerator import ours
from benchmarks.pretraining.protocol import Prepared, Step, serve
from benchmarks.pretraining.workload import Setting, Workload

WARM_UP_STEPS, TRACED_STEPS = 3, 5


def prepare(workload: Workload, setting: Setting, directory: pathlib.Path,
            output: pathlib.Path) -> Prepared:
    """Returns what `ours` does, with a step that writes a trace."""
    prepared = ours.prepare(workload, setting, directory)
    return dataclasses.replace(prepared, build=lambda: _traced(prepared.build(), output))


def _traced(step: Step, output: pathlib.Path) -> Step:
    def run(count: int) -> float:
        for _ in range(count):
            loss = step()
        return float(loss)

    def traced() -> float:
        run(WARM_UP_STEPS)
        with jax.profiler.trace(str(output), create_perfetto_trace=True):
            return run(TRACED_STEPS)

    return traced


if __name__ == "__main__":
    serve(functools.partial(prepare, directory=pathlib.Path(sys.argv[1]),
                            output=pathlib.Path(sys.argv[2])))
