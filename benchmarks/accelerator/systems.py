"""What is compared on an accelerator, and the processes: one at a time has the card."""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence

from benchmarks.harness import systems
from benchmarks.harness.process import Worker
from benchmarks.pretraining.systems import Role, System
from benchmarks.pretraining.workload import Setting, Workload

_MEMORY_FRACTION = "0.92"
"""Of the card's memory, for JAX, which otherwise stops at 0.75: PyTorch doesn't stop either."""


def of_device(device: str) -> list[System]:
    """Returns all systems.

    Args:
        device: "cpu" or "cuda".
    """
    def peer(name: str, module: str, role: Role, compiler: str = "off") -> System:
        title = "rate" if role is Role.RATE else "Hugging Face"
        return System(name=name, title=title, role=role, module=module,
                      in_peers_environment=True,
                      setting=Setting(precision="bfloat16", compiler=compiler, device=device))

    return [
        System(name="ours", title="electra_tf", role=Role.OURS, module="ours",
               setting=Setting(precision="bfloat16", compiler="on", device=device)),
        peer("rate", "gemm_torch", Role.RATE),
        peer("hf-eager", "hugging_face", Role.PEER),
        peer("hf-compiled", "hugging_face", Role.PEER, "on"),
        peer("hf-graphs", "hugging_face", Role.PEER, "graphs")]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Launcher:
    """Starts the processes of one case."""

    steps: pathlib.Path
    """Directory that `export` wrote."""
    peers_python: pathlib.Path | None
    """Interpreter with PyTorch; None for this one."""
    caches: pathlib.Path
    """For what compilers keep: empty at first, so that the first start is a first start."""
    timeout: float
    """Seconds to wait for one answer."""

    def start(self, system: System, *arguments: str) -> Worker:
        """Starts a system's process.

        Args:
            system: which.
            arguments: for it, besides; for a worker of ours the first is the directory of steps.
        """
        package = "accelerator" if system.role is Role.OURS else "pretraining"
        return systems.launch(
            f"benchmarks.{package}.{system.module}", timeout=self.timeout,
            peers_python=self.peers_python if system.in_peers_environment else None,
            arguments=arguments if system.in_peers_environment else (
                str(self.steps.absolute()), *arguments),
            variables=_variables(system.setting.device, self.caches / system.name))

    def profile(self, workload: Workload, device: str, directory: str) -> pathlib.Path:
        """Writes a trace of some of our steps; returns its directory, named after the case.

        Raises:
            WorkerFailed: it couldn't.
        """
        (ours,) = chosen(device, ["ours"])
        output = (pathlib.Path(directory) / workload.case).absolute()
        tracer = self.start(dataclasses.replace(ours, module="profile"), str(output))
        with contextlib.closing(tracer):
            tracer.ask({"workload": dataclasses.asdict(workload),
                        "setting": dataclasses.asdict(ours.setting)})
            tracer.ask({"steps": 1})
        return output


def _variables(device: str, cache: pathlib.Path) -> Mapping[str, str]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return {
        "CUDA_VISIBLE_DEVICES": "-1" if device == "cpu" else visible,
        "JAX_PLATFORMS": device if device == "cpu" else f"{device},cpu",
        "JAX_COMPILATION_CACHE_DIR": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "XLA_PYTHON_CLIENT_MEM_FRACTION": _MEMORY_FRACTION}


def chosen(device: str, beginnings: Sequence[str]) -> list[System]:
    """Returns the systems whose names begin as asked; all, if nothing is.

    Raises:
        UserError: a beginning that fits no system.
    """
    return systems.chosen(of_device(device), beginnings)
