"""The process of one system: it measures some work and prints a line of JSON.

    python -m benchmarks.data_prep.systems '{"name": "full", "text": "text.txt", ...}'

A system is one setting of one implementation. PyTorch's environment has no TensorFlow, so this
module needs only the standard library. The driver's environment selects oneDNN and log levels.
"""

import json
import sys
import time
import types
from collections.abc import Callable, Mapping
from typing import Any

from electra_tf.core.machine import peak_memory_bytes

Work = Callable[[], Mapping[str, Any]]
"""Does the measured work once, and returns further fields of the line."""


def run(prepare: Callable[..., Work]) -> None:
    """Measures the work that `prepare` returns for the settings on the command line.

    The first call, which traces and compiles, is counted as part of the start. `warm_up` calls
    follow that are not counted, then `repeat` calls. Seconds are those of one call.
    """
    settings = vars(json.loads(
        sys.argv[1], object_hook=lambda fields: types.SimpleNamespace(**fields)))
    process_begin = settings.pop("begin", time.time())
    warm_up, repeat = settings.pop("warm_up", 0), settings.pop("repeat", 1)
    work = prepare(**settings)
    work()
    start_seconds = time.time() - process_begin
    for _ in range(warm_up):
        work()
    begin, cpu_begin = time.perf_counter(), time.process_time()
    for _ in range(repeat):
        line = work()
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    print("\n" + json.dumps({  # A library may have printed half a line.
        "seconds": seconds / repeat, "cpu_seconds": cpu_seconds / repeat,
        "start_seconds": start_seconds, "peak_gb": peak_memory_bytes() / 1e9, **line}))
