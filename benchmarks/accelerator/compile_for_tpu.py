r"""Compiles an exported step for TPUs without a TPU; runs in the compile environment.

    .venv/bin/python -m benchmarks.accelerator.export --case=base-256x128 --output=base.stablehlo
    .venv-compile/bin/python -m benchmarks.accelerator.compile_for_tpu \
        --step=base.stablehlo --topology=v5e:2x4,v3:2x2

Prints the HBM and the FLOPs that a step needs on one core of each topology, or why it does not
compile. `make compile-env` installs JAX and libtpu. A step of ELECTRA-Base takes minutes.
--topology=cuda compiles for the GPUs of this machine, if JAX's plugin for CUDA is installed.
"""

import os
import pathlib
import re
import time
from typing import Any

from absl import flags

from electra_tf.core import command_line
from electra_tf.core.errors import UserError, one_line, shown

EXAMPLES = "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1 or v6e:2x4"
# Without these, libtpu asks the network of a TPU VM, on other machines for minutes. Several
# processes may load it there.
_WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TPU_MIN_LOG_LEVEL": "3"}
_DTYPES = {"i1": "bool", "i32": "int32", "i64": "int64", "ui32": "uint32", "f32": "float32"}


def devices_of(topology: str) -> list:
    """Returns the cores of TPUs that this machine lacks; its own devices for cpu and cuda."""
    import jax
    from jax.experimental import topologies

    one_chip = {"chips_per_host_bounds": [1, 1, 1]} if re.search(":1x1(x1)?$", topology) else {}
    try:
        return (jax.devices(topology) if topology in ("cpu", "cuda") else
                topologies.get_topology_desc(
                    platform="tpu", topology_name=topology or "none", **one_chip).devices)
    except (ValueError, RuntimeError) as error:
        reason = one_line(str(error).removeprefix("INVALID_ARGUMENT: ").splitlines()[0], 200)
        raise UserError(f"--topology: there is no {shown(topology)}; take for example {EXAMPLES} "
                        f"({reason})") from error


def compile_step(module: bytes, devices: list) -> Any:
    """Returns JAX's compiled program of a step for devices that share the batch.

    The batch is the first three arguments. Every device has all others, the state.
    """
    import jax
    import numpy as np
    from jax.extend import mlir as artifacts
    from jax.extend.core import Primitive
    from jax.extend.mlir.dialects import func
    from jax.extend.mlir.ir import FlatSymbolRefAttr, RankedTensorType, SymbolTable
    from jax.interpreters import mlir
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    jax.config.update("jax_enable_x64", True)  # The step and Philox's counters have 64 bits.
    with mlir.make_ir_context():
        main = SymbolTable(artifacts.deserialize_portable_artifact(module).operation)["main"]
        inputs, results = ([jax.core.ShapedArray(array.shape, np.dtype(
            _DTYPES[str(array.element_type)])) for array in map(RankedTensorType, types)]
            for types in (main.type.inputs, main.type.results))
    if inputs[0].shape[0] % len(devices):
        raise UserError(f"--topology: {len(devices)} devices can't share a batch of "
                        f"{inputs[0].shape[0]}; export a case whose batch is a multiple.")

    # The module as an operation of JAX, whose compiler partitions it.
    def lower(context: mlir.LoweringRuleContext, *arguments: Any) -> Any:
        target = context.module_context.module
        with target.context:
            name = mlir.merge_mlir_modules(
                target, "step", artifacts.deserialize_portable_artifact(module))
        types = [mlir.aval_to_ir_type(context.module_context, result) for result in results]
        return func.CallOp(types, FlatSymbolRefAttr.get(name), arguments).results

    step = Primitive("training_step")
    step.multiple_results = True
    step.def_abstract_eval(lambda *_: results)
    mlir.register_lowering(step, lower)
    mesh = Mesh(np.asarray(devices), ("data",))
    split, replicated = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(
        mesh, PartitionSpec())
    return jax.jit(
        lambda batch, state: step.bind(*batch, *state), in_shardings=(split, replicated),
        out_shardings=replicated, donate_argnums=1).lower(inputs[:3], inputs[3:]).compile()


def main() -> None:
    """Prints a line for every topology; ends with status 1 if the step does not compile for one."""
    has_tpu = os.path.exists("/dev/accel0") or os.path.exists("/dev/vfio")
    os.environ.update((_QUIET if has_tpu else _QUIET | _WITHOUT_TPU) | os.environ)
    try:
        topologies = {name: devices_of(name) for name in flags.FLAGS.topology}
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed in this environment; run this command with "
                        "the Python of `make compile-env`.") from error
    module, failed = pathlib.Path(flags.FLAGS.step).read_bytes(), False
    print("all numbers are of one core", flush=True)
    for name, devices in topologies.items():
        begin = time.monotonic()
        try:
            compiled = compile_step(module, devices)
            memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
            state, temporary = memory.argument_size_in_bytes, memory.temp_size_in_bytes
            total = (state + memory.output_size_in_bytes - memory.alias_size_in_bytes + temporary
                     + memory.generated_code_size_in_bytes)
            # FLOPs include at most two rounds of accumulation.
            needs = (f"{total / 1e6:,.1f} MB of HBM, state and batch {state / 1e6:,.1f}, "
                     f"activations and gradients {temporary / 1e6:,.1f}; "
                     f"{cost.get('flops', 0) / 1e9:,.1f} GFLOPs")
        except (ValueError, RuntimeError) as error:
            needs, failed = one_line(str(error), 400), True
        print(f"{name}, {len(devices)} cores, after {time.monotonic() - begin:.0f} s: {needs}",
              flush=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    flags.DEFINE_string("step", None, "File of a step that benchmarks.accelerator.export wrote.",
                        required=True)
    flags.DEFINE_list("topology", None, f"TPUs to compile for: {EXAMPLES}; or several, separated "
                      "by commas. cuda: the GPUs of this machine.", required=True)
    command_line.run(main, summary=__doc__, groups={"What": ("step", "topology")})
