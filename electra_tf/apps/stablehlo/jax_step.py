"""Runs a lifted step on JAX's runtime, without TensorFlow.

XLA's partitioner splits the program for the whole batch over devices, with sums over devices where
gradients need them.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence

# Without these, libtpu asks the network of a TPU VM, on other machines for minutes. Several
# processes may load it there.
if not os.path.exists("/dev/accel0") and not os.path.exists("/dev/vfio"):
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    os.environ.setdefault("TPU_WORKER_HOSTNAMES", "localhost")
    os.environ.setdefault("TPU_WORKER_ID", "0")
    os.environ.setdefault("TPU_ACCELERATOR_TYPE", "v5litepod-8")
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TPU_MIN_LOG_LEVEL", "3")

import jax
import numpy as np
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from electra_tf.apps.stablehlo.artefact import LiftedStep, Value
from electra_tf.platform.errors import UserError

jax.config.update("jax_enable_x64", True)  # The step and Philox's counters have 64 bits.

_CALLING_CONVENTION = 10
"""Version of JAX's exports whose modules take only the function's arguments."""

Arrays = Mapping[str, jax.Array]


class JaxStep:
    """A lifted step on devices, or compiled for devices that this machine lacks."""

    def __init__(self, step: LiftedStep, devices: Sequence[jax.Device], platform: str):
        """Takes devices of one kind, which share the batch, and the platform of `platform_of`.

        A batch that cannot be split evenly is refused with a `UserError`.
        """
        self._layout = step.layout
        require_even_split(step.layout.batch_size, len(devices), f"{len(devices)} devices")
        mesh = Mesh(np.asarray(devices), ("data",))
        self._whole = NamedSharding(mesh, PartitionSpec())
        self._split = NamedSharding(mesh, PartitionSpec("data"))
        exported = _exported(step, platform)
        names = [value.name for value in step.layout.state]

        def run(batch: Sequence[jax.Array], state: Arrays) -> tuple[Arrays, Arrays]:
            outputs = exported.call(*batch, *(state[name] for name in names))
            new = {value.name: state[value.name] if value.result is None else outputs[value.result]
                   for value in step.layout.state}
            return dict(zip(step.layout.results, outputs, strict=False)), new

        self._run = jax.jit(run, in_shardings=(self._split, self._whole),
                            out_shardings=self._whole, donate_argnums=1)

    def __call__(self, batch: Sequence[np.ndarray], state: Arrays) -> tuple[Arrays, Arrays]:
        """Runs one step and returns its results and the new state; deletes the old state."""
        return self._run([jax.device_put(part, self._split) for part in batch], state)

    def on_devices(self, state: Mapping[str, np.ndarray]) -> Arrays:
        """Puts a state on every device."""
        return jax.device_put(dict(state), self._whole)

    def compile(self) -> jax.stages.Compiled:
        """Compiles the step without running it."""
        def shape(value: Value, sharding: NamedSharding) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding)

        return self._run.lower(
            [shape(value, self._split) for value in self._layout.batch],
            {value.name: shape(value, self._whole) for value in self._layout.state}).compile()


def platform_of(device: jax.Device) -> str:
    """Returns "cpu", "cuda", "rocm" or "tpu"; JAX itself calls "cuda" "gpu"."""
    return {"gpu": "cuda"}.get(device.platform, device.platform)


def require_even_split(batch_size: int, devices: int, whose: str) -> None:
    """Raises a `UserError` unless the devices, named `whose`, can share a batch evenly."""
    if batch_size % devices:
        raise UserError(
            f"a batch of {batch_size} examples can't be split over {whose}. Export the step again "
            f"by electra_tf.apps.stablehlo.compile_step, with --train_batch_size of a multiple of "
            f"{devices}, for example {max(devices, batch_size // devices * devices)}.")


def _exported(step: LiftedStep, platform: str) -> export.Exported:
    """Returns a step as if JAX had exported it."""
    layout = step.layout
    inputs = tuple(_aval(value.shape, value.dtype) for value in (*layout.batch, *layout.state))
    found = {index: _aval((), "float32") for index in range(len(layout.results))}
    found |= {value.result: _aval(value.shape, value.dtype) for value in layout.state
              if value.result is not None}
    outputs = tuple(found[index] for index in range(len(found)))
    nowhere = (None,) * len(inputs), (None,) * len(outputs)
    # JAX 0.10 asks whether shardings have names; in 0.11 all have.
    fields = {field.name for field in dataclasses.fields(export.Exported)}
    named = {name: True for name in fields & {"_has_named_shardings"}}
    return export.Exported(
        fun_name="step",
        in_tree=jax.tree.structure((tuple(range(len(inputs))), {})), in_avals=inputs,
        out_tree=jax.tree.structure(tuple(range(len(outputs)))), out_avals=outputs,
        _in_named_shardings=nowhere[0], _out_named_shardings=nowhere[1],
        in_shardings_hlo=nowhere[0], out_shardings_hlo=nowhere[1], nr_devices=1,
        platforms=(platform,), ordered_effects=(), unordered_effects=(),
        disabled_safety_checks=(), mlir_module_serialized=step.module,
        calling_convention_version=_CALLING_CONVENTION,
        module_kept_var_idx=tuple(range(len(inputs))), uses_global_constants=False, _get_vjp=None,
        **named)


def _aval(shape: tuple[int, ...], dtype: str) -> jax.core.ShapedArray:
    return jax.core.ShapedArray(shape, np.dtype(dtype))
