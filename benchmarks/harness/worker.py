"""The worker's side: requests on stdin, replies on stdout, one JSON object a line.

    > {"workload": {...}, "setting": {...}}
    < {"label": "bfloat16, XLA off", "versions": {"TensorFlow": "2.20.0"}, ...}
    > {"steps": 1}
    < {"seconds": 21.4, "cpu_seconds": 40.1, "peak_bytes": 1500000000, "loss": 45.1}

The first request holds the case and the system's settings. Every other request asks for a turn. A
closed stdin ends the worker. Standard library only: every environment has it.
"""

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from electra_tf.platform.machine import peak_memory_bytes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ready:
    """A system that is ready for its turns."""

    label: str
    """The setting in the system's own words, "auto" resolved."""
    turn: Callable[..., Mapping[str, Any] | None]
    """Takes a request's fields and returns further fields of the reply."""
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Library -> version."""
    accelerator: str = ""
    """The accelerator's name in its driver; "" for the CPU."""
    peak_bytes: Callable[[], int] = peak_memory_bytes
    """Returns the largest memory so far; on an accelerator, that of its allocator."""


def serve(prepare: Callable[..., Ready]) -> None:
    """Answers requests until stdin closes; `prepare` takes the fields of the first one."""
    requests = (json.loads(line) for line in sys.stdin)
    ready = prepare(**next(requests))
    # All CPU time so far: the interpreter, imports, tables.
    _reply({"label": ready.label, "versions": ready.versions, "accelerator": ready.accelerator,
            "start_cpu_seconds": time.process_time()})
    for request in requests:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        result = ready.turn(**request)
        _reply({"seconds": time.perf_counter() - begin,
                "cpu_seconds": time.process_time() - begin_cpu,
                "peak_bytes": ready.peak_bytes(), **(result or {})})


def _reply(fields: Mapping[str, Any]) -> None:
    """Writes a reply on a line of its own, even after a library that printed half a line."""
    print(f"\n{json.dumps(fields)}", flush=True)
