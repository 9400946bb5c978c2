r"""Compiles an exported step for TPUs without a TPU; runs in the compile environment.

    .venv/bin/python -m benchmarks.accelerator.export --cases=base-256x128 --output_dir=steps
    .venv-compile/bin/python -m benchmarks.accelerator.compile_for_tpu \
        --step=steps/base-256x128.stablehlo --topology=v5e:2x4,v3:2x2

Prints the HBM and the FLOPs that a step needs on one core of each topology, or why it does not
compile. `make compile-env` installs JAX and libtpu. A step of ELECTRA-Base takes minutes.
"""

import os
import pathlib
import re
import time

from absl import flags

from benchmarks.accelerator import lifted_step
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError, one_line, shown

EXAMPLES = "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1 or v6e:2x4"
# Without these, libtpu asks the network of a TPU VM, on other machines for minutes. Several
# processes may load it there.
_WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "TPU_WORKER_ID": "0",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
_QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "TPU_MIN_LOG_LEVEL": "3"}


def main() -> None:
    """Prints a line for every topology; ends with status 1 if the step does not compile for one."""
    has_tpu = os.path.exists("/dev/accel0") or os.path.exists("/dev/vfio")
    os.environ.update((_QUIET if has_tpu else _QUIET | _WITHOUT_TPU) | os.environ)
    try:
        from jax.experimental import topologies

        from benchmarks.accelerator.ours import compile_step
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed in this environment; run this command with "
                        "the Python of `make compile-env`.") from error
    step = lifted_step.read(pathlib.Path(flags.FLAGS.step))
    batch_size, length = step.layout.batch[0].shape
    cores_of = {}
    for name in flags.FLAGS.topology:
        one_chip = {"chips_per_host_bounds": [1, 1, 1]} if re.search(":1x1(x1)?$", name) else {}
        try:
            if not name:
                raise ValueError("a name is missing")
            cores = topologies.get_topology_desc(
                platform="tpu", topology_name=name, **one_chip).devices
        except (ValueError, RuntimeError, NotImplementedError) as error:
            reason = str(error).removeprefix("INVALID_ARGUMENT: ").splitlines()[0]
            raise UserError(f"--topology: there is no {shown(name)}; take for example {EXAMPLES} "
                            f"(libtpu: {one_line(reason, 200)})") from error
        cores_of[name] = cores
        if batch_size % len(cores):
            raise UserError(f"--topology: the {len(cores)} cores of {name} can't share a batch of "
                            f"{batch_size}; export a case whose batch is a multiple.")
    print(f"batch {batch_size}, L = {length}; all numbers are of one core", flush=True)
    failed = False
    for name, cores in cores_of.items():
        start = time.monotonic()
        try:
            compiled = compile_step(step, cores)
            memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
            state, temporary = memory.argument_size_in_bytes, memory.temp_size_in_bytes
            total = (state + memory.output_size_in_bytes - memory.alias_size_in_bytes + temporary
                     + memory.generated_code_size_in_bytes)
            # FLOPs include at most two rounds of accumulation.
            needs = (f"{total / 1e6:,.1f} MB of HBM, state and batch {state / 1e6:,.1f}, "
                     f"activations and gradients {temporary / 1e6:,.1f}; "
                     f"{cost.get('flops', 0) / 1e9:,.1f} GFLOPs")
        except (ValueError, RuntimeError, NotImplementedError) as error:
            needs, failed = one_line(str(error), 400), True
        print(f"{name}, {len(cores)} cores, after {time.monotonic() - start:.0f} s: {needs}",
              flush=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    flags.DEFINE_string("step", None, "File of a step that benchmarks.accelerator.export wrote.",
                        required=True)
    flags.DEFINE_list("topology", None, f"TPUs to compile for: {EXAMPLES}; or several, separated "
                      "by commas.", required=True)
    command_line.run(main, summary=__doc__, groups={"What": ("step", "topology")})
