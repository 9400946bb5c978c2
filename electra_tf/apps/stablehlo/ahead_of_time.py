r"""Compiles a lifted step for TPUs or GPUs that aren't there; in the compile environment.

    .venv-compile/bin/python -m electra_tf.apps.stablehlo.ahead_of_time --step=step.stablehlo \
        --topology=v5e:2x4

Prints a line of JSON: `Report`. Without --step it says what the topology is. `compile_step` calls
it and shows the reports.
"""

import dataclasses
import re
import time

from absl import flags

from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.compile_environment import Collective, Cores, Memory, Report
from electra_tf.platform import command_line, storage, strict_json
from electra_tf.platform.errors import UserError, one_line, shown

EXAMPLES = "v2:2x2, v3:2x2, v4:2x2x1, v5e:2x4, v5p:2x2x1, v6e:2x4, a100:8, h100:8 or h200:8"
_ONE_CHIP = re.compile(r"1x1(x1)?")
_DOES_NOT_FIT = re.compile(r"RESOURCE_EXHAUSTED|[Rr]an out of memory|exceeds? .*memory")
_EXCHANGE = re.compile(r"(?m)^ *(?:ROOT )?%\S+ = (?P<types>.*?) (?P<kind>all-reduce|all-gather|"
                       r"all-to-all|reduce-scatter|collective-permute)(?:-start)?\(")
_TYPE = re.compile(r"\b(pred|[a-z]+(?P<bits>\d+))\[(?P<shape>[\d,]*)\]")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Card:
    """An NVIDIA card as XLA's compiler is told of it where there is none."""

    kind: str
    """As its driver names it."""
    compute_capability: int
    """The major number; the minor one is 0."""
    multiprocessors: int
    float32_units: int
    """Of a multiprocessor."""
    gigahertz: float
    memory: int
    """Bytes."""
    bandwidth: int
    """Bytes a second."""
    l2_cache: int
    """Bytes."""
    shared_memory: int
    """Bytes of a multiprocessor, one KiB of which is the system's."""

    def configuration(self) -> str:
        """Returns a CardConfigProto of XLA's, as text."""
        return f"""
            platform_name: "CUDA"
            device_description_str: "{self.kind}"
            dnn_version_info {{ major: 9 minor: 10 }}
            gpu_device_info {{
              cuda_compute_capability {{ major: {self.compute_capability} }}
              core_count: {self.multiprocessors}
              fpus_per_core: {self.float32_units}
              clock_rate_ghz: {self.gigahertz}
              device_memory_size: {self.memory}
              memory_bandwidth: {self.bandwidth}
              l2_cache_size: {self.l2_cache}
              shared_memory_per_core: {self.shared_memory}
              shared_memory_per_block_optin: {self.shared_memory - 1024}
              shared_memory_per_block: 49152
              threads_per_block_limit: 1024 threads_per_core_limit: 2048 threads_per_warp: 32
              registers_per_core_limit: 65536 registers_per_block_limit: 65536
              block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
            }}"""


_HOPPER = {"compute_capability": 9, "multiprocessors": 132, "float32_units": 128,
           "gigahertz": 1.98, "l2_cache": 50 * 2**20, "shared_memory": 228 * 2**10}
CARDS = {
    "a100": Card(kind="NVIDIA A100-SXM4-80GB", compute_capability=8, multiprocessors=108,
                      float32_units=64, gigahertz=1.41, memory=80 * 2**30,
                      bandwidth=2_039_000_000_000, l2_cache=40 * 2**20,
                      shared_memory=164 * 2**10),
    "h100": Card(kind="NVIDIA H100 80GB HBM3", memory=80 * 2**30,
                      bandwidth=3_352_000_000_000, **_HOPPER),
    "h200": Card(kind="NVIDIA H200", memory=141 * 10**9, bandwidth=4_800_000_000_000,
                      **_HOPPER),
}
"""Name before the colon of a topology -> card, by NVIDIA's data sheets."""
_MOST_CARDS = 8
"""Cards of a machine."""


def topology(name: str):
    """Returns a description of devices by their name.

    Args:
        name: of TPUs generation and layout of chips, "v5e:2x4"; of GPUs a card and how many of one
            machine, "h100:8".

    Raises:
        UserError: there is no such topology, or no compiler for it.
    """
    target = CARDS.get(name.partition(":")[0])
    return _tpus(name) if target is None else _gpus(name, target)


def _gpus(name: str, target: Card):
    count = name.partition(":")[2]
    if not re.fullmatch(f"[1-{_MOST_CARDS}]", count):
        raise UserError(f"--topology={shown(name)}: how many cards of one machine? 1 to "
                        f"{_MOST_CARDS}, for example {name.partition(':')[0]}:1.")
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
    target = CARDS.get(name.partition(":")[0])
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
