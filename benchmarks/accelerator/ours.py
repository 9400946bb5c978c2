"""Worker: our exported training step on JAX's runtime; needs no TensorFlow."""

import functools
import itertools
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from benchmarks.accelerator import steps
from benchmarks.harness import worker
from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.workload import Setting, Step, Workload, steps_of, workload_from
from electra_tf.apps.stablehlo import jax_step
from electra_tf.apps.stablehlo.artefact import LiftedStep
from electra_tf.platform.machine import peak_memory_bytes


def prepare(workload: Mapping[str, Any], setting: Mapping[str, Any], steps_dir: str) -> Ready:
    """Returns the step of the workload's case, for the first device."""
    work, how = workload_from(workload), Setting(**setting)
    step = steps.read(pathlib.Path(steps_dir), work.case)
    device = jax.devices(how.device)[0]
    return Ready(
        label=f"{how.precision}, StableHLO on JAX", versions={"JAX": jax.__version__},
        turn=steps_of(lambda: build(step, work, device)),
        accelerator="" if device.platform == "cpu" else device.device_kind,
        peak_bytes=functools.partial(_peak_bytes, device))


def build(step: LiftedStep, workload: Workload, device: jax.Device) -> Step:
    """Puts an initial state and synthetic batches on a device."""
    call = jax_step.JaxStep(step, [device], jax_step.platform_of(device))
    state = call.on_devices(steps.initial_state(step.layout))
    batches = itertools.cycle([jax.device_put(batch, device) for batch in _batches(workload)])

    def one_step() -> jax.Array:
        nonlocal state
        results, state = call(next(batches), state)
        return results["loss/sum"] / results["loss/weight"]

    return one_step


def _batches(workload: Workload) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields ids int32, valid bool and segment_ids int32, [B, L] each: text without padding."""
    shape = workload.batch, workload.length
    generator = np.random.default_rng(1)
    for _ in range(plain.BATCHES):
        ids = generator.integers(plain.FIRST_WORD_ID, workload.vocab_size, shape, np.int32)
        yield ids, np.ones(shape, bool), np.zeros(shape, np.int32)


def _peak_bytes(device: jax.Device) -> int:
    """Returns the peak of JAX's allocator; on the CPU, which has none, the process's."""
    memory = device.memory_stats()
    return memory["peak_bytes_in_use"] if memory else peak_memory_bytes()


if __name__ == "__main__":
    worker.serve(prepare)
