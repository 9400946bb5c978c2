r"""Compiles a lifted step for TPUs or GPUs that aren't there; in the compile environment.

    .venv-compile/bin/python -m electra_tf.apps.stablehlo.ahead_of_time --step=step.stablehlo \
        --topology=v5e:2x4

Prints a line of JSON: `Report`. Without --step it says what the topology is. `compile_step` calls
it and shows the reports.
"""

import re
import time

from absl import flags

from electra_tf.apps.stablehlo import artefact, gpu_targets
from electra_tf.apps.stablehlo.report import Collective, Cores, Memory, Report
from electra_tf.platform import command_line, storage, strict_json
from electra_tf.platform.errors import UserError, one_line, shown

EXAMPLES = "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1, v6e:2x4, a100:8, h100:8 or h200:8"
_ONE_CHIP = re.compile(r"1x1(x1)?")
_DOES_NOT_FIT = re.compile(r"RESOURCE_EXHAUSTED|[Rr]an out of memory|exceeds? .*memory")
_EXCHANGE = re.compile(r"(?m)^ *(?:ROOT )?%\S+ = (?P<types>.*?) (?P<kind>all-reduce|all-gather|"
                       r"all-to-all|reduce-scatter|collective-permute)(?:-start)?\(")
_TYPE = re.compile(r"\b(pred|[a-z]+(?P<bits>\d+))\[(?P<shape>[\d,]*)\]")


def topology(name: str):
    """Returns a description of devices by their name.

    Args:
        name: of TPUs generation and layout of chips, "v5e:2x4"; of GPUs a card and how many of one
            machine, "h100:8".

    Raises:
        UserError: there is no such topology, or no compiler for it.
    """
    target = gpu_targets.TARGETS.get(name.partition(":")[0])
    return _tpus(name) if target is None else _gpus(name, target)


def _gpus(name: str, target: gpu_targets.GpuTarget):
    count = name.partition(":")[2]
    if not re.fullmatch(f"[1-{gpu_targets.MOST}]", count):
        raise UserError(f"--topology={shown(name)}: how many cards of one machine? 1 to "
                        f"{gpu_targets.MOST}, for example {name.partition(':')[0]}:1.")
    import jax
    from jax.experimental import topologies

    jax.config.update("jax_platforms", "cpu")  # Else JAX looks for a card first, and fails.
    try:
        return topologies.get_topology_desc(
            platform="cuda", topology_name=name, topology=f"1x1x{count}",
            target_config=target.configuration())
    except (ValueError, RuntimeError, NotImplementedError) as error:
        raise UserError(f"--topology={shown(name)} needs NVIDIA's compiler: run `make "
                        f"compile-cuda` (JAX: {one_line(str(error), 200)})") from error


def _tpus(name: str):
    from jax.experimental import topologies


    generation, _, chips = name.partition(":")
    options = {"chips_per_host_bounds": [1, 1, 1]} if _ONE_CHIP.fullmatch(chips) else {}
    try:
        if not name:
            raise ValueError("a name is missing")
        return topologies.get_topology_desc(platform="tpu", topology_name=name, **options)
    except (ValueError, RuntimeError, NotImplementedError) as error:
        reason = str(error).removeprefix("INVALID_ARGUMENT: ").splitlines()[0]
        raise UserError(f"--topology: there is no {shown(name)}; take for example {EXAMPLES} "
                        f"(libtpu: {one_line(reason, 200)})") from error


def cores(name: str) -> Cores:
    """Returns what a topology has; `UserError` as `topology`."""
    devices = topology(name).devices
    return Cores(topology=name, kind=devices[0].device_kind, count=len(devices))


def compile_for(step: artefact.LiftedStep, name: str) -> Report:
    """Compiles a step for a topology.

    Raises:
        UserError: no such topology, or its cores can't share the batch.
    """
    from electra_tf.apps.stablehlo import jax_step

    found = cores(name)
    jax_step.require_even_split(step.layout.batch_size, found.count,
                                f"the {found.count} cores of {name}")
    devices = topology(name).devices
    call = jax_step.JaxStep(step, devices, jax_step.platform_of(devices[0]))
    began = time.monotonic()
    try:
        compiled = call.compile()
    except (ValueError, RuntimeError, NotImplementedError) as error:
        return Report(cores=found, seconds=time.monotonic() - began, problem=_problem(error))
    seconds = time.monotonic() - began
    taken, cost = compiled.memory_analysis(), compiled.cost_analysis() or {}
    memory = Memory(
        arguments=taken.argument_size_in_bytes, outputs=taken.output_size_in_bytes,
        shared=taken.alias_size_in_bytes, temporary=taken.temp_size_in_bytes,
        code=taken.generated_code_size_in_bytes)
    problem = too_large_for_a_card(name, memory)
    if problem is not None:
        return Report(cores=found, seconds=seconds, problem=problem)
    return Report(
        cores=found, seconds=seconds, flops=cost.get("flops"),
        bytes_accessed=cost.get("bytes accessed"), collectives=collectives(compiled.as_text()),
        memory=memory)


def too_large_for_a_card(name: str, memory: Memory) -> str | None:
    """Returns what is wrong if a GPU hasn't the memory, which XLA would say on the card alone."""
    target = gpu_targets.TARGETS.get(name.partition(":")[0])
    if target is None or memory.total <= target.memory:
        return None
    return f"does not fit: {memory.total / 1e9:.1f} GB of {target.memory / 1e9:.1f} GB per card"


def collectives(module: str) -> tuple[Collective, ...]:
    """Counts what devices send each other in a step.

    Args:
        module: of one device, as XLA writes it.
    """
    found: dict[str, list[int]] = {}
    for match in _EXCHANGE.finditer(module):
        found.setdefault(match["kind"], []).append(_bytes(match["types"]))
    return tuple(Collective(kind=kind, count=len(sizes), bytes=sum(sizes))
                 for kind, sizes in sorted(found.items()))


def _bytes(types: str) -> int:
    total = 0
    for match in _TYPE.finditer(types):
        size = int(match["bits"] or 8) // 8
        for part in filter(None, match["shape"].split(",")):
            size *= int(part)
        total += size
    return total


def _problem(error: Exception) -> str:
    """Returns what the compiler says in a line, of memory only how much is missing."""
    text = str(error)
    used = re.search(r"Used ([\d.]+\w) of ([\d.]+\w) hbm", text) or re.search(
        r"temporaries \(([\d.]+\w)\) exceeds available HBM \(([\d.]+\w)\)", text)
    if used and _DOES_NOT_FIT.search(text):
        return f"does not fit: {used[1]} of {used[2]} HBM per core"
    return one_line(text, 400)


def main() -> None:
    """Prints what the flags ask for as JSON."""
    values = flags.FLAGS
    if values.step:
        report = compile_for(artefact.read(storage.path(values.step)), values.topology)
        print(strict_json.dumps(report, Report).decode(), flush=True)
    else:
        print(strict_json.dumps(cores(values.topology), Cores).decode(), flush=True)


def define() -> None:
    """Defines the flags."""
    flags.DEFINE_string("topology", "", f"TPUs or GPUs to compile for: {EXAMPLES}.")
    flags.DEFINE_string("step", "", "File of a step, by compile_step --export.")


if __name__ == "__main__":
    define()
    command_line.run(main, summary=__doc__, groups={"What": ("step", "topology")})
