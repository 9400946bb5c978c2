r"""Compiles a lifted step for TPUs without a TPU; runs in the compile environment.

    .venv-compile/bin/python -m electra_tf.apps.stablehlo.ahead_of_time --step=step.stablehlo \
        --topology=v5e:2x4,v4:2x2x1

Prints the needs of one core for each topology: HBM in total, for state and batch, for activations
and gradients, and the FLOPs of a step. Without --step the command only checks that the cores can
share --batch_size. `compile_step` calls it.
"""

import re
import sys
import time
from typing import Any

from absl import flags

from electra_tf.apps.stablehlo import artefact
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError, one_line, shown

EXAMPLES = "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1 or v6e:2x4"
_ONE_CHIP = re.compile(r"1x1(x1)?")
_ROW = "{:<12}{:>6}{:>12}{:>12}{:>12}{:>10}{:>13}"


def main() -> None:
    """Prints a row for every topology; ends with status 1 if the step does not compile for one.

    Unknown topologies, and cores that can't share the batch, are refused with a `UserError`.
    """
    from electra_tf.apps.stablehlo import jax_step

    values, problems = flags.FLAGS, 0
    step = artefact.read(storage.path(values.step)) if values.step else None
    batch_size = step.layout.batch_size if step else values.batch_size
    devices = {name: _devices(name) for name in values.topology}
    for name, cores in devices.items():
        jax_step.require_even_split(batch_size, len(cores), f"the {len(cores)} cores of {name}")
    if step is None:
        return
    print(f"batch {batch_size}, L = {step.layout.batch[0].shape[1]}; all numbers are of one core\n"
          + _ROW.format("topology", "cores", "HBM, MB", "state", "temporary", "GFLOPs",
                        "compiled in"), flush=True)
    for name, cores in devices.items():
        began = time.monotonic()
        try:
            numbers = _numbers(jax_step.JaxStep(step, cores, "tpu").compile())
        except (ValueError, RuntimeError, NotImplementedError) as error:
            problems += 1
            print(f"{name:<12}{len(cores):>6}  {problem(str(error))}", flush=True)
        else:
            print(_ROW.format(name, len(cores), *numbers, f"{time.monotonic() - began:.0f} s"),
                  flush=True)
    if problems:
        print(f"error: {problems} of {len(devices)} compilations failed.", file=sys.stderr)
        raise SystemExit(1)


def _devices(name: str) -> list[Any]:
    """Returns the cores of a topology, "GENERATION:CHIPS" such as "v5e:2x4"."""
    from jax.experimental import topologies

    chips = name.partition(":")[2]
    options = {"chips_per_host_bounds": [1, 1, 1]} if _ONE_CHIP.fullmatch(chips) else {}
    try:
        if not name:
            raise ValueError("a name is missing")
        return topologies.get_topology_desc(
            platform="tpu", topology_name=name, **options).devices
    except (ValueError, RuntimeError, NotImplementedError) as error:
        reason = str(error).removeprefix("INVALID_ARGUMENT: ").splitlines()[0]
        raise UserError(f"--topology: there is no {shown(name)}; take for example {EXAMPLES} "
                        f"(libtpu: {one_line(reason, 200)})") from error


def _numbers(compiled: Any) -> list[str]:
    """Returns MB and GFLOPs of one core; FLOPs include at most two rounds of accumulation."""
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
    state = memory.argument_size_in_bytes
    total = (state + memory.output_size_in_bytes - memory.alias_size_in_bytes
             + memory.temp_size_in_bytes + memory.generated_code_size_in_bytes)
    return [*(f"{size / 1e6:,.1f}" for size in (total, state, memory.temp_size_in_bytes)),
            f"{cost['flops'] / 1e9:,.0f}" if "flops" in cost else "-"]


def problem(error: str) -> str:
    """Returns the compiler's error in one line; of memory errors, only used and available HBM."""
    used = re.search(r"Used ([\d.]+\w) of ([\d.]+\w) hbm", error) or re.search(
        r"temporaries \(([\d.]+\w)\) exceeds available HBM \(([\d.]+\w)\)", error)
    return f"does not fit: {used[1]} of {used[2]} HBM per core" if used else one_line(error, 400)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_list("topology", [], f"TPUs to compile for: {EXAMPLES}; or several, with commas.")
    flags.DEFINE_string("step", "", "File of a step that compile_step --export wrote.")
    flags.DEFINE_integer("batch_size", 0, "Global batch size in examples, without --step.")


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups={"What": ("step", "topology", "batch_size")})
