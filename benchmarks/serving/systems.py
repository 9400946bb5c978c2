"""What is compared: settings of ours and of the peer, each a process."""

import dataclasses
import pathlib
from collections.abc import Sequence

from benchmarks.harness import systems
from benchmarks.harness.process import Worker
from benchmarks.serving import models
from benchmarks.serving.workload import FROZEN_WEIGHTS, Workload

_TIMEOUT = 600
"""Seconds to wait for one turn."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class System:
    """One setting of one implementation."""

    name: str
    """As `--systems` takes it."""
    module: str
    precision: str
    threads_per_op: bool = False
    """TensorFlow's default, where one op may use all cores; otherwise ops run side by side."""
    frozen: bool = False
    """oneDNN keeps its own packed copies of the weights, which it may not do unless told that they
    never change."""
    autocast: bool = False

    @property
    def ours(self) -> bool:
        """Whether it needs no environment of its own."""
        return self.module == "ours"

    @property
    def title(self) -> str:
        """Who is measured."""
        return "electra_tf" if self.ours else "Hugging Face"

    def workload(self, directory: pathlib.Path, texts: pathlib.Path, cores: int) -> Workload:
        """Returns what its worker is told; `directory`: that `models.write` wrote."""
        model = f"{self.precision}/1" if self.ours else models.HUGGING_FACE
        return Workload(
            model=str(directory / model), texts=str(texts), precision=self.precision,
            autocast=self.autocast, threads=cores, intra_op=cores if self.threads_per_op else 1)


SYSTEMS = (
    System(name="ours-bfloat16-frozen", module="ours", precision="bfloat16", frozen=True),
    System(name="ours-bfloat16", module="ours", precision="bfloat16"),
    System(name="ours-bfloat16-default", module="ours", precision="bfloat16", threads_per_op=True),
    System(name="ours-float32-frozen", module="ours", precision="float32", frozen=True),
    System(name="ours-float32", module="ours", precision="float32"),
    System(name="hf-bfloat16", module="hugging_face", precision="bfloat16"),
    System(name="hf-bfloat16-autocast", module="hugging_face", precision="bfloat16", autocast=True),
    System(name="hf-float32", module="hugging_face", precision="float32"),
)


def chosen(beginnings: Sequence[str], *, with_peers_environment: bool) -> list[System]:
    """Returns the systems whose name begins with one of these; all if there are none.

    Raises:
        UserError: nothing begins so.
    """
    return [system for system in systems.chosen(SYSTEMS, beginnings)
            if system.ours or with_peers_environment]


def launch(system: System, peers_python: pathlib.Path) -> Worker:
    """Starts a system's process."""
    return systems.launch(
        f"benchmarks.serving.{system.module}", timeout=_TIMEOUT,
        peers_python=None if system.ours else peers_python,
        variables={FROZEN_WEIGHTS: str(int(system.frozen))})
