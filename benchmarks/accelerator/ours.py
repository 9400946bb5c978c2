"""Runs this project's exported training step on JAX's runtime, without TensorFlow."""

import functools
import itertools
import pathlib
from collections.abc import Iterator

import jax
import numpy as np

from benchmarks.accelerator.state import initial_state
from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.workload import Setting, Step, Workload, serve, steps_of
from electra_tf.apps.stablehlo import artefact, jax_step
from electra_tf.apps.stablehlo.artefact import LiftedStep
from electra_tf.platform.machine import peak_memory_bytes


def prepare(workload: Workload, setting: Setting, steps_dir: str) -> Ready:
    """Returns the step of the workload's case, for the first device."""
    step = artefact.read(pathlib.Path(steps_dir) / f"{workload.case}{artefact.SUFFIX}")
    device = jax.devices(setting.device)[0]
    return Ready(
        label=f"{setting.precision}, StableHLO on JAX", versions={"JAX": jax.__version__},
        turn=steps_of(lambda: _build(step, workload, device)),
        accelerator="" if device.platform == "cpu" else device.device_kind,
        peak_bytes=functools.partial(_peak_bytes, device))


def _build(step: LiftedStep, workload: Workload, device: jax.Device) -> Step:
    """Puts an initial state and synthetic batches on a device."""
    call = jax_step.JaxStep(step, [device], jax_step.platform_of(device))
    state = call.on_devices(initial_state(step.layout))
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
    serve(prepare)
