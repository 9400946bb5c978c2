"""Worker: our exported training step on JAX's runtime; needs no TensorFlow.

Its argument is the directory of steps.
"""

import functools
import itertools
import pathlib
import sys
from collections.abc import Iterator

import jax
import numpy as np

from benchmarks.accelerator import steps
from benchmarks.accelerator.initial_state import initial_state
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.protocol import Prepared, Step, peak_rss_bytes, serve
from benchmarks.pretraining.workload import Setting, Workload
from electra_tf.apps.stablehlo import jax_step
from electra_tf.apps.stablehlo.artefact import LiftedStep


def prepare(workload: Workload, setting: Setting, directory: pathlib.Path) -> Prepared:
    """Returns the step of the workload's case, for the first device."""
    step = steps.read(directory, workload.case)
    device = jax.devices(setting.device)[0]
    return Prepared(
        label=f"{setting.precision}, StableHLO on JAX", versions={"JAX": jax.__version__},
        accelerator="" if device.platform == "cpu" else device.device_kind,
        peak_bytes=functools.partial(_peak_bytes, device),
        build=lambda: build(step, workload, device))


def build(step: LiftedStep, workload: Workload, device: jax.Device) -> Step:
    """Puts an initial state and synthetic batches on a device.

    Args:
        step: of the workload's case.
        workload: says what ids to draw.
        device: where to run.
    """
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
    """Of JAX's allocator; of the CPU, which has none, the process's."""
    memory = device.memory_stats()
    return memory["peak_bytes_in_use"] if memory else peak_rss_bytes()


if __name__ == "__main__":
    serve(functools.partial(prepare, directory=pathlib.Path(sys.argv[1])))
