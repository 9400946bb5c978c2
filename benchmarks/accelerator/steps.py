"""The directory of steps that is carried, three small files per case: no weights are among them.

CASE.stablehlo and CASE.json are the step and its layout, CASE.workload.json says what is computed.
"""

import math
import pathlib
from collections.abc import Sequence

import numpy as np

from benchmarks.pretraining.report import matmul_flops_per_token
from benchmarks.pretraining.workload import Workload
from electra_tf.apps.stablehlo import artefact
from electra_tf.apps.stablehlo.artefact import Layout, LiftedStep, StateValue
from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB

_DEVIATION = 0.02
"""Standard deviation of initial weights (ELECTRA, appendix A: as BERT)."""
_EXPORT = "python -m benchmarks.accelerator.export"


def path_of(directory: pathlib.Path, case: str) -> pathlib.Path:
    """Returns the file of a case's step."""
    return directory / f"{case}{artefact.SUFFIX}"


def write(step: LiftedStep, workload: Workload, directory: pathlib.Path) -> None:
    """Writes a step, under the name of its case."""
    path = path_of(directory, workload.case)
    artefact.write(step, path)
    atomic_file.write_atomically(_workload_path(path), strict_json.dumps(workload, Workload))


def found(directory: pathlib.Path, wanted: Sequence[str]) -> list[Workload]:
    """Returns what to measure, each step once looked at: the smallest first if all are wanted.

    Args:
        directory: that `export` wrote.
        wanted: names of cases; all that are there if empty.

    Raises:
        UserError: no step is there, or not that of a case, or one isn't whole.
    """
    there = sorted(path.stem for path in directory.glob(f"*{artefact.SUFFIX}"))
    if not there:
        raise UserError(f"--steps={directory} holds no step; where TensorFlow is, write some with "
                        f"`{_EXPORT} --output_dir={directory}`.")
    for case in wanted:
        if case not in there:
            raise UserError(f"--cases: there is no step of {case} in {directory}. There are: "
                            f"{', '.join(there)}")
    workloads = [_workload(directory, case) for case in wanted or there]
    return workloads if wanted else sorted(
        workloads, key=lambda one: one.tokens * matmul_flops_per_token(one))


def read(directory: pathlib.Path, case: str) -> LiftedStep:
    """Reads the step of a case, or raises `UserError` if it isn't whole."""
    return artefact.read(path_of(directory, case))


def _workload(directory: pathlib.Path, case: str) -> Workload:
    path = _workload_path(path_of(directory, case))
    fix = f"write it again with `{_EXPORT} --cases={case}`."
    workload = strict_json.read(path, Workload, most=MIB, fix=fix,
                                absent=f"{path} does not exist; {fix}")
    batch = read(directory, case).layout.batch[0].shape
    if (workload.case, workload.batch, workload.length) != (case, *batch):
        raise UserError(f"{path} doesn't describe the step beside it; {fix}")
    return workload


def _workload_path(path: pathlib.Path) -> pathlib.Path:
    return path.with_suffix(".workload.json")


def initial_state(layout: Layout, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns name -> value of a layout's state as a run begins: speed needs no other values.

    Kernels and tables are drawn from normal(0, 0.02), layer norms' gamma and the scale of the loss
    are ones; biases, the optimizer's moments and the step are zeros.
    """
    generator = np.random.default_rng(seed)
    return {value.name: _initial(value, generator) for value in layout.state}


def _initial(value: StateValue, generator: np.random.Generator) -> np.ndarray:
    kind = value.name.rpartition("/")[2]
    if kind in ("gamma", "loss_scale"):
        return np.ones(value.shape, value.dtype)
    if kind == "kernel" or kind.endswith("_embeddings"):
        drawn = generator.standard_normal(math.prod(value.shape), np.float32) * _DEVIATION
        return drawn.reshape(value.shape).astype(value.dtype)
    if kind in ("adam_m", "adam_v", "beta", "bias", "output_bias", "step"):
        return np.zeros(value.shape, value.dtype)
    raise ValueError(f"no rule for the initial value of {value.name}.")
