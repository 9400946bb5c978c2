"""Runs this project's exported training step on JAX's runtime, without TensorFlow."""

import itertools
import pathlib
from collections.abc import Iterator

import jax
import numpy as np

from benchmarks.accelerator import lifted_step
from benchmarks.accelerator.jax_step import jit_step
from benchmarks.accelerator.lifted_step import LiftedStep
from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.workload import Setting, Step, Workload, serve, steps_of
from electra_tf.platform.machine import peak_memory_bytes


def prepare(workload: Workload, setting: Setting, steps_dir: str) -> Ready:
    """Returns the step of the workload's case, for the first device."""
    step = lifted_step.read(pathlib.Path(steps_dir) / f"{workload.case}{lifted_step.SUFFIX}")
    device = jax.devices(setting.device)[0]
    return Ready(
        label=f"{setting.precision}, StableHLO on JAX", versions={"JAX": jax.__version__},
        turn=steps_of(lambda: _build(step, workload, device)),
        accelerator="" if device.platform == "cpu" else device.device_kind,
        # JAX's allocator on the CPU has no statistics.
        peak_bytes=lambda: (device.memory_stats() or {}).get(
            "peak_bytes_in_use", peak_memory_bytes()))


def _build(step: LiftedStep, workload: Workload, device: jax.Device) -> Step:
    """Puts an initial state and synthetic batches on a device."""
    run = jit_step(step, [device])
    state = jax.device_put(lifted_step.initial_state(step.layout), device)
    batches = itertools.cycle([jax.device_put(batch, device) for batch in _batches(workload)])

    def one_step() -> jax.Array:
        nonlocal state
        results, state = run(next(batches), state)
        return results["loss/sum"] / results["loss/weight"]

    return one_step


def _batches(workload: Workload) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields ids int32, valid bool and segment_ids int32, [B, L] each: text without padding."""
    shape = workload.batch, workload.length
    generator = np.random.default_rng(1)
    for _ in range(plain.BATCHES):
        ids = generator.integers(plain.FIRST_WORD_ID, workload.vocab_size, shape, np.int32)
        yield ids, np.ones(shape, bool), np.zeros(shape, np.int32)


if __name__ == "__main__":
    serve(prepare)
