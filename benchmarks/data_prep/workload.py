"""What a turn of the data preparation benchmark does, and how workers talk about it.

    > {"vocab_file": "vocab.txt", "max_seq_length": 128, "packing": "full"}
    < {"label": "full packing", "start_cpu_seconds": 3.1}
    > {"text": "part-0.txt"}
    < {"seconds": 1.4, "cpu_seconds": 1.3, "text_tokens": 850000, "bytes": 2200000, "peak_bytes": 8}

A turn goes once over a file of text, on one core. The first one warms up. Standard library only.
"""

import dataclasses
import pathlib
import resource
import tempfile
import time
from collections.abc import Callable

from benchmarks.harness import worker


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """What a worker is asked to do with every text."""

    vocab_file: str
    max_seq_length: int
    packing: str = ""
    """Of `data_prep`; others have none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Written:
    """What came of a text."""

    text_tokens: int | None = None
    """Word pieces of the text; None if the system doesn't count them."""
    bytes: int | None = None
    """Of records; None if none are made."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prepared:
    """A system that is ready."""

    label: str
    turn: Callable[[pathlib.Path, pathlib.Path], Written]
    """Takes a file of text and an empty directory for what is written."""


def serve(prepare: Callable[[Workload], Prepared]) -> None:
    """Answers requests until stdin closes."""
    def begin(opening: worker.Fields) -> tuple[worker.Fields, worker.Answer]:
        prepared = prepare(Workload(**opening))

        def answer(request: worker.Fields) -> worker.Fields:
            with tempfile.TemporaryDirectory() as scratch:
                start, start_cpu = time.perf_counter(), time.process_time()
                written = prepared.turn(pathlib.Path(request["text"]), pathlib.Path(scratch))
                seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
            return dataclasses.asdict(written) | {
                "seconds": seconds, "cpu_seconds": cpu,
                "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}

        # All CPU time so far: imports, tables, the interpreter.
        return {"label": prepared.label, "start_cpu_seconds": time.process_time()}, answer

    worker.serve(begin)
