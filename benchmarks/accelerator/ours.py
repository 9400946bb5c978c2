"""Runs this project's exported training step on JAX's runtime, without TensorFlow.

XLA's partitioner splits the program for the whole batch over devices, with sums over devices where
gradients need them. `compile_step` compiles for devices that this machine lacks.
"""

import dataclasses
import itertools
import pathlib
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.accelerator import lifted_step
from benchmarks.accelerator.lifted_step import LiftedStep, StepArgument
from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload
from benchmarks.pretraining.workload import Step, StepOptions, Workload
from electra_tf.platform.machine import peak_memory_bytes

jax.config.update("jax_enable_x64", True)  # The step and Philox's counters have 64 bits.

_CALLING_CONVENTION = 10
"""Version of JAX's exports whose modules take only the function's arguments."""
Arrays = Mapping[str, jax.Array]


def jit_step(step: LiftedStep, devices: Sequence[jax.Device]) -> jax.stages.Wrapped:
    """Returns a step as a function (batch, state) -> (results, new state).

    The devices, of one kind, share the batch evenly. Each has the whole state, name -> value; a
    call deletes the old one. The batch has the layout's tensors in their order.
    """
    layout, platform = step.layout, devices[0].platform
    inputs = tuple(map(_shape, (*layout.batch, *layout.state)))
    scalar = jax.core.ShapedArray((), np.dtype("float32"))
    new_values = {value.result: _shape(value) for value in layout.state if value.result is not None}
    outputs = tuple(new_values.get(index, scalar)
                    for index in range(len(layout.results) + len(new_values)))
    unset = (None,) * len(inputs), (None,) * len(outputs)
    # JAX 0.10 asks whether shardings have names; in 0.11 all have.
    fields = {field.name for field in dataclasses.fields(export.Exported)}
    exported = export.Exported(
        fun_name="step",
        in_tree=jax.tree.structure((tuple(range(len(inputs))), {})), in_avals=inputs,
        out_tree=jax.tree.structure(tuple(range(len(outputs)))), out_avals=outputs,
        _in_named_shardings=unset[0], _out_named_shardings=unset[1],
        in_shardings_hlo=unset[0], out_shardings_hlo=unset[1], nr_devices=1,
        platforms=({"gpu": "cuda"}.get(platform, platform),), ordered_effects=(),
        unordered_effects=(), disabled_safety_checks=(), mlir_module_serialized=step.module,
        calling_convention_version=_CALLING_CONVENTION,
        module_kept_var_idx=tuple(range(len(inputs))), uses_global_constants=False, _get_vjp=None,
        **dict.fromkeys(fields & {"_has_named_shardings"}, True))
    mesh = Mesh(np.asarray(devices), ("data",))
    split, replicated = (
        NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec()))

    def run(batch: Sequence[jax.Array], state: Arrays) -> tuple[Arrays, Arrays]:
        outputs = exported.call(*batch, *(state[value.name] for value in layout.state))
        new_state = {value.name: state[value.name] if value.result is None
                     else outputs[value.result] for value in layout.state}
        return dict(zip(layout.results, outputs, strict=False)), new_state

    return jax.jit(run, in_shardings=(split, replicated), out_shardings=replicated,
                   donate_argnums=1)


def compile_step(step: LiftedStep, devices: Sequence[jax.Device]) -> jax.stages.Compiled:
    """Compiles the function of `jit_step` without running it."""
    return jit_step(step, devices).lower(
        [_shape(value) for value in step.layout.batch],
        {value.name: _shape(value) for value in step.layout.state}).compile()


def _shape(value: StepArgument) -> jax.core.ShapedArray:
    return jax.core.ShapedArray(value.shape, np.dtype(value.dtype))


@workload.takes_workload
def prepare(work: Workload, options: StepOptions, steps_dir: str) -> Ready:
    """Returns the step of the workload's case, for the first device."""
    step = lifted_step.read(pathlib.Path(steps_dir) / f"{work.case}{lifted_step.SUFFIX}")
    device = jax.devices(options.device)[0]
    return Ready(
        label=f"{options.precision}, StableHLO on JAX", versions={"JAX": jax.__version__},
        turn=workload.steps_of(lambda: _build(step, work, device)),
        accelerator="" if device.platform == "cpu" else device.device_kind,
        # JAX's allocator on the CPU has no statistics.
        peak_bytes=lambda: (device.memory_stats() or {}).get(
            "peak_bytes_in_use", peak_memory_bytes()))


def _build(step: LiftedStep, work: Workload, device: jax.Device) -> Step:
    """Puts an initial state and synthetic batches without padding on a device."""
    run = jit_step(step, [device])
    state = jax.device_put(lifted_step.initial_state(step.layout), device)
    shape, generator = (work.batch, work.length), np.random.default_rng(1)
    # The layout's batch: ids int32, valid bool and segment_ids int32, [B, L] each.
    batches = itertools.cycle([jax.device_put((
        generator.integers(workload.FIRST_WORD_ID, work.vocab_size, shape, np.int32),
        np.ones(shape, bool), np.zeros(shape, np.int32)), device)
        for _ in range(workload.BATCHES)])

    def one_step() -> jax.Array:
        nonlocal state
        results, state = run(next(batches), state)
        return results["loss/sum"] / results["loss/weight"]

    return one_step
