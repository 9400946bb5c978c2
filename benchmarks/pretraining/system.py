"""The process of one system: it runs training steps and prints a line of JSON.

    python -m benchmarks.pretraining.ours '{"work": {...}, "precision": "float32", "repeat": 3}'

A system is one setting of one implementation. PyTorch's environment has no TensorFlow, so this
module needs only the standard library. The driver's environment selects cores and log levels. The
constants are what all systems have in common.
"""

import json
import sys
import time
import types
from collections.abc import Callable, Mapping
from typing import Any

from electra_tf.core.machine import peak_memory_bytes

Workload = types.SimpleNamespace
"""A case: `batch` B, `length` L without padding, `predictions` N masked positions per example,
`threads` CPU cores, the fields of an EncoderConfig for `discriminator` and `generator`,
`token_flops`, the FLOPs of all matmuls of training per token, and `matmuls`, without those of
attention: [rows, inputs] x [inputs, outputs] and how often, in all three forms, in a step."""

PAD_ID, CLS_ID, SEP_ID, MASK_ID = SPECIAL_IDS = 0, 101, 102, 103
"""Special entries of BERT's vocabulary, which are never masked and never replaced."""
FIRST_WORD_ID = 104  # First id of synthetic text; the last one is V - 1.
BATCHES = 16  # Number of distinct synthetic batches, which steps use cyclically.
MASK_TOKEN_FRACTION = 0.85
"""Fraction of the masked positions that read [MASK] (ELECTRA, section 3.1)."""
GENERATOR_WEIGHT, DISCRIMINATOR_WEIGHT = 1.0, 50.0
LEARNING_RATE, WEIGHT_DECAY, ADAM_EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0
Step = Callable[[], Mapping[str, Any]]
"""Runs a training step, and returns "label", "versions" and, if it has one, "loss"."""


def run(prepare: Callable[..., Step]) -> None:
    """Measures the step that `prepare` returns for the settings on the command line.

    The first call, which traces and compiles, is counted as part of the start. `warm_up` calls
    follow that are not counted, then `repeat` calls. Seconds are those of one call.
    """
    settings = vars(json.loads(
        sys.argv[1], object_hook=lambda fields: types.SimpleNamespace(**fields)))
    process_begin = settings.pop("begin", time.time())
    warm_up, repeat = settings.pop("warm_up", 0), settings.pop("repeat", 1)
    step = prepare(**settings)
    step()
    start_seconds = time.time() - process_begin
    for _ in range(warm_up):
        step()
    begin = time.perf_counter()
    for _ in range(repeat):
        line = step()
    seconds = time.perf_counter() - begin
    print("\n" + json.dumps({  # A library may have printed half a line.
        "seconds": seconds / repeat, "start_seconds": start_seconds,
        "peak_gb": peak_memory_bytes() / 1e9, **line}))
