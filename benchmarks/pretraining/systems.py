"""What is compared: every system, its worker and the environment it runs in."""

import dataclasses
import enum
import pathlib
from collections.abc import Sequence

from benchmarks.harness import systems
from benchmarks.harness.process import Worker
from benchmarks.pretraining.workload import Setting

_NOTES = {
    "model_garden": "Model Garden ties the word embeddings alone, and its inputs are masked before "
                    "the step: it does a little less than the others.",
}

class Role(enum.StrEnum):
    """What a system's numbers are used for."""

    OURS = "ours"
    RATE = "rate"
    """Products alone: the limit that the others are held against."""
    PEER = "peer"


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """One setting of one implementation, run by a process of its own."""

    name: str
    title: str
    role: Role
    module: str
    """Of the package of its benchmark."""
    setting: Setting
    in_peers_environment: bool = False

    @property
    def note(self) -> str:
        """What a reader of its numbers should know; empty if nothing."""
        return _NOTES.get(self.module, "")


def _system(name: str, title: str, role: Role, module: str, precision: str,
            compiler: str = "off") -> System:
    return System(
        name=name, title=title, role=role, module=module,
        setting=Setting(precision=precision, compiler=compiler),
        in_peers_environment=module in ("hugging_face", "gemm_torch"))


SYSTEMS = (
    _system("ours-bfloat16", "electra_tf", Role.OURS, "ours", "bfloat16", "auto"),
    _system("ours-float32", "electra_tf", Role.OURS, "ours", "float32", "auto"),
    # Where "auto" is off, these say what was measured already, and are left out.
    _system("ours-bfloat16-no-xla", "electra_tf", Role.OURS, "ours", "bfloat16"),
    _system("ours-float32-no-xla", "electra_tf", Role.OURS, "ours", "float32"),
    _system("rate-tensorflow-bfloat16", "rate", Role.RATE, "gemm_tensorflow", "bfloat16"),
    _system("rate-tensorflow-float32", "rate", Role.RATE, "gemm_tensorflow", "float32"),
    _system("rate-torch-bfloat16", "rate", Role.RATE, "gemm_torch", "bfloat16"),
    _system("rate-torch-float32", "rate", Role.RATE, "gemm_torch", "float32"),
    _system("hf-bfloat16", "Hugging Face", Role.PEER, "hugging_face", "bfloat16"),
    _system("hf-bfloat16-compiled", "Hugging Face", Role.PEER, "hugging_face", "bfloat16", "on"),
    _system("hf-float32", "Hugging Face", Role.PEER, "hugging_face", "float32"),
    _system("hf-float32-compiled", "Hugging Face", Role.PEER, "hugging_face", "float32", "on"),
    _system("mg-float32", "Model Garden", Role.PEER, "model_garden", "float32"),
    _system("mg-float32-xla", "Model Garden", Role.PEER, "model_garden", "float32", "on"),
    # Fails in release 2.20; tried all the same, so that the table shows why.
    _system("mg-bfloat16", "Model Garden", Role.PEER, "model_garden", "bfloat16"),
)


def chosen(beginnings: Sequence[str], *, with_peers_environment: bool) -> list[System]:
    """Returns the systems whose names begin as asked (all, if nothing is), and the rates.

    Raises:
        UserError: a beginning that fits no system.
    """
    rates = [system for system in SYSTEMS if system.role is Role.RATE]
    others = [system for system in SYSTEMS if system.role is not Role.RATE]
    wanted = [*systems.chosen(others, beginnings), *rates]
    return [system for system in SYSTEMS if system in wanted
            and (with_peers_environment or not system.in_peers_environment)]


def launch(system: System, *, peers_python: pathlib.Path, threads: int, cache: pathlib.Path,
           timeout: float) -> Worker:
    """Starts a system's process.

    Args:
        system: which.
        peers_python: interpreter of the peers' environment.
        threads: CPU cores to use.
        cache: empty directory for what `torch.compile` writes, so that its start is a first start.
        timeout: seconds to wait for one answer.
    """
    return systems.launch(
        f"benchmarks.pretraining.{system.module}", threads=threads, timeout=timeout,
        peers_python=peers_python if system.in_peers_environment else None,
        variables={"TF_NUM_INTEROP_THREADS": str(threads), "TF_NUM_INTRAOP_THREADS": str(threads),
                   "TORCHINDUCTOR_CACHE_DIR": str(cache)})
