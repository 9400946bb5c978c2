"""Stores a lifted step without weights as NAME.stablehlo and NAME.json, its layout."""

import dataclasses
import hashlib
import pathlib
from typing import Literal

import numpy as np

from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB

SUFFIX = ".stablehlo"
_MAX_BYTES = 16 * MIB
"""Largest layout: ELECTRA-Large's has 1,400 tensors of state, 150 bytes each."""
_FIX = "export the step again with `python -m benchmarks.accelerator.export`."


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepArgument:
    """A tensor that is an argument of the step."""

    __pydantic_config__ = strict_json.STRICT

    name: str
    shape: tuple[int, ...]
    dtype: str
    """NumPy's name."""
    result: int | None = None
    """Index of the result that is the tensor's new value; None if a step does not change it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepLayout:
    """The description of a step as a pure function: (batch, state) -> (results, new state).

    Its arguments are `batch`, then `state`. Its first results are `results`, scalars; `state` names
    the results that are new values of the state.
    """

    __pydantic_config__ = strict_json.STRICT

    format_version: Literal[2] = 2
    sha256: str
    """Hash of the StableHLO, hexadecimal."""
    batch: tuple[StepArgument, ...]
    """Tensors [B, L]; B is the global batch."""
    state: tuple[StepArgument, ...]
    """Weights, optimizer slots, the number of steps."""
    results: tuple[str, ...]
    """"loss/sum", "loss/weight" and so on: sums and weights of means, float32 []."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LiftedStep:
    """A training step as a pure function."""

    module: bytes
    """StableHLO's portable form."""
    layout: StepLayout


def write(step: LiftedStep, path: pathlib.Path) -> None:
    """Writes a step to a file that ends in .stablehlo, and its layout beside it."""
    atomic_file.make_directory(path.parent)
    atomic_file.write_atomically(path, step.module)
    atomic_file.write_atomically(
        path.with_suffix(".json"), strict_json.dumps(step.layout, StepLayout) + b"\n")


def read(path: pathlib.Path) -> LiftedStep:
    """Reads what `write` wrote; `UserError` for a damaged file or files of two steps."""
    layout_path = path.with_suffix(".json")
    layout = strict_json.read(layout_path, StepLayout, max_bytes=_MAX_BYTES, fix=_FIX, absent=(
        f"{layout_path} does not exist: a step is two files, {path.name} and {layout_path.name}; "
        f"{_FIX}"))
    module = path.read_bytes()
    if hashlib.sha256(module).hexdigest() != layout.sha256:
        raise UserError(f"{path} isn't the step that {layout_path.name} describes; {_FIX}")
    return LiftedStep(module=module, layout=layout)


def initial_state(layout: StepLayout) -> dict[str, np.ndarray]:
    """Returns name -> initial value of a layout's state; speed does not depend on the values.

    Kernels and tables are drawn from normal(0, 0.02), as BERT's; layer norms' gamma and the scale
    of the loss are ones; biases, the optimizer's moments and the number of steps are zeros.
    """
    generator, state = np.random.default_rng(0), {}
    for value in layout.state:
        kind = value.name.rpartition("/")[2]
        if kind == "kernel" or kind.endswith("_embeddings"):
            initial = generator.standard_normal(value.shape, np.float32) * 0.02
        else:
            initial = np.full(value.shape, kind in ("gamma", "loss_scale"))
        state[value.name] = initial.astype(value.dtype)
    return state
