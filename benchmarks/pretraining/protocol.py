"""What the workers of the pre-training benchmark are asked, and answer.

    > {"workload": {...}, "setting": {...}}
    < {"label": "bfloat16, XLA off", "versions": {"TensorFlow": "2.20.0"}}
    > {"steps": 1}
    < {"seconds": 21.4, "loss": 45.1, "peak_rss_bytes": 1500000000}

The first steps include building the model, tracing and compiling. Standard library only.
"""

import dataclasses
import resource
import sys
import time
from collections.abc import Callable, Mapping

from benchmarks.harness import worker
from benchmarks.pretraining.workload import Setting, Workload, workload_from

Step = Callable[[], float | None]
"""Runs one training step to its end; returns its loss, or None where nothing is learned."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system that is imported but not built."""

    label: str
    """The setting in the system's own words, "auto" resolved."""
    versions: Mapping[str, str]
    """Library -> version."""
    build: Callable[[], Step]


def serve(prepare: Callable[[Workload, Setting], Prepared]) -> None:
    """Answers requests until stdin closes."""
    def begin(opening: worker.Fields) -> tuple[worker.Fields, worker.Answer]:
        prepared = prepare(workload_from(opening["workload"]), Setting(**opening["setting"]))
        step = None

        def answer(request: worker.Fields) -> worker.Fields:
            nonlocal step
            start = time.perf_counter()
            step = step or prepared.build()
            for _ in range(request["steps"]):
                loss = step()
            return {"seconds": time.perf_counter() - start, "loss": loss,
                    "peak_rss_bytes": _peak_rss_bytes()}

        return {"label": prepared.label, "versions": prepared.versions}, answer

    worker.serve(begin)


def _peak_rss_bytes() -> int:
    """Largest resident memory so far; Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
