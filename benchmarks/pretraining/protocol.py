"""What the workers of the pre-training benchmark are asked, and answer.

    > {"workload": {...}, "setting": {...}}
    < {"label": "bfloat16, XLA off", "versions": {"TensorFlow": "2.20.0"}, "accelerator": ""}
    > {"steps": 1}
    < {"seconds": 21.4, "loss": 45.1, "peak_bytes": 1500000000}

The first steps include building the model, tracing and compiling. Standard library only.
"""

import dataclasses
import resource
import sys
import time
from collections.abc import Callable, Mapping
from typing import SupportsFloat

from benchmarks.harness import worker
from benchmarks.pretraining.workload import Setting, Workload, workload_from

Step = Callable[[], SupportsFloat | None]
"""Runs one training step; returns its loss, or None where nothing is learned.

On an accelerator the step may still be at work: its loss is there when `float` of it is.
"""


def peak_rss_bytes() -> int:
    """Returns the largest resident memory so far; Linux counts in KiB, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system that is imported but not built."""

    label: str
    """The setting in the system's own words, "auto" resolved."""
    versions: Mapping[str, str]
    """Library -> version."""
    build: Callable[[], Step]
    accelerator: str = ""
    """Its name, as its driver gives it; "" for the CPU."""
    peak_bytes: Callable[[], int] = peak_rss_bytes
    """The most memory that was taken so far: of an accelerator its own."""


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
            loss = None if loss is None else float(loss)  # Waits for the steps.
            return {"seconds": time.perf_counter() - start, "loss": loss,
                    "peak_bytes": prepared.peak_bytes()}

        return {"label": prepared.label, "versions": prepared.versions,
                "accelerator": prepared.accelerator}, answer

    worker.serve(begin)
