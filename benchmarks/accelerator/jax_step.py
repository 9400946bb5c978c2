"""Runs a lifted step on JAX's runtime, or compiles it for devices that this machine lacks.

XLA's partitioner splits the program for the whole batch over devices, with sums over devices where
gradients need them.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.accelerator.lifted_step import Argument, LiftedStep

jax.config.update("jax_enable_x64", True)  # The step and Philox's counters have 64 bits.

_CALLING_CONVENTION = 10
"""Version of JAX's exports whose modules take only the function's arguments."""
Arrays = Mapping[str, jax.Array]

def jit_step(step: LiftedStep, devices: Sequence[jax.Device]) -> jax.stages.Wrapped:
    """Returns a step as a function (batch, state) -> (results, new state).

    The devices, of one kind, share the batch evenly. Each has the whole state, name -> value; a
    call deletes the old one. The batch has the layout's tensors in their order.
    """
    layout, exported = step.layout, _exported(step, devices[0].platform)
    mesh = Mesh(np.asarray(devices), ("data",))
    split, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    def run(batch: Sequence[jax.Array], state: Arrays) -> tuple[Arrays, Arrays]:
        outputs = exported.call(*batch, *(state[value.name] for value in layout.state))
        new_state = {value.name: state[value.name] if value.result is None
                     else outputs[value.result] for value in layout.state}
        return dict(zip(layout.results, outputs, strict=False)), new_state

    return jax.jit(run, in_shardings=(split, whole), out_shardings=whole, donate_argnums=1)


def compile_step(step: LiftedStep, devices: Sequence[jax.Device]) -> jax.stages.Compiled:
    """Compiles the function of `jit_step` without running it."""
    return jit_step(step, devices).lower(
        [_shape(value) for value in step.layout.batch],
        {value.name: _shape(value) for value in step.layout.state}).compile()


def _exported(step: LiftedStep, platform: str) -> export.Exported:
    """Returns a step as if JAX had exported it."""
    layout = step.layout
    inputs = tuple(map(_shape, (*layout.batch, *layout.state)))
    scalar = jax.core.ShapedArray((), np.dtype("float32"))
    new_values = {value.result: _shape(value) for value in layout.state if value.result is not None}
    outputs = tuple(new_values.get(index, scalar)
                    for index in range(len(layout.results) + len(new_values)))
    unset = (None,) * len(inputs), (None,) * len(outputs)
    # JAX 0.10 asks whether shardings have names; in 0.11 all have.
    fields = {field.name for field in dataclasses.fields(export.Exported)}
    return export.Exported(
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


def _shape(value: Argument) -> jax.core.ShapedArray:
    return jax.core.ShapedArray(value.shape, np.dtype(value.dtype))
