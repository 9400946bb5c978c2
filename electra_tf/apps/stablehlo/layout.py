"""What stands where in a lifted step: its arguments, its results, and the run that it is of."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from electra_tf.platform import strict_json
from electra_tf.platform.bounded import MIB
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

FORMAT_VERSION = 1
STEP = "step"
"""Name of the state's counter of steps, int64 []."""
_MOST_BYTES = 16 * MIB
"""ELECTRA-Large has 1,400 tensors of state, 150 bytes each."""
_FIX = "export the step again with `python -m electra_tf.apps.stablehlo.compile_step --export`."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Value:
    """A tensor that goes in."""

    __pydantic_config__ = strict_json.STRICT

    name: str
    shape: tuple[int, ...]
    dtype: str
    """NumPy's name."""

    def zeros(self) -> np.ndarray:
        """Returns a tensor like it."""
        return np.zeros(self.shape, self.dtype)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateValue(Value):
    """A tensor of the state."""

    result: int | None
    """Which of the step's results is its new value; None for one that a step doesn't change."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """How the run reads its records, as `electra_tf.data.pipeline` does."""

    __pydantic_config__ = strict_json.STRICT

    fingerprint: str
    """Of the records."""
    seed: int
    shuffle_window: int
    length: int
    """L."""
    pad_id: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """The step is a pure function: (batch, state) -> (results, new state).

    Its arguments are `batch` and then `state`, one after the other. Of its results the first are
    `results`, scalars; where a new value of the state is, the state says.
    """

    __pydantic_config__ = strict_json.STRICT

    format_version: int
    sha256: str
    """Of the StableHLO, hexadecimal."""
    batch_size: int
    """B, the global batch."""
    num_train_steps: int
    batch: tuple[Value, ...]
    """Tensors [B, ...]."""
    state: tuple[StateValue, ...]
    """Weights, optimizer slots, the step."""
    results: tuple[str, ...]
    """"loss/sum", "loss/weight" and so on: means that aren't divided yet, float32 []."""
    reading: Reading | None
    """None where the step was made without records."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """All arguments, in order."""
        return self.batch + self.state

    def means(self, results: Mapping[str, float]) -> dict[str, float]:
        """Returns every loss and statistic, divided once.

        Args:
            results: `results` by name, added up over as many steps as wanted.
        """
        names = [name.removesuffix("/sum") for name in self.results if name.endswith("/sum")]
        return {name: results[f"{name}/sum"] / max(results[f"{name}/weight"], 1.0)
                for name in names}


def write(layout: Layout, path: Path) -> None:
    """Writes a layout as JSON; the directory is there."""
    path.write_bytes(strict_json.dumps(layout, Layout) + b"\n")


def read(path: Path) -> Layout:
    """Reads what `write` wrote.

    Raises:
        UserError: no such file, damaged, or of another version of the format.
    """
    found = strict_json.read(path, Layout, most=_MOST_BYTES, fix=_FIX, absent=(
        f"{path} does not exist: a step is three files side by side, .stablehlo, .json and .npz; "
        f"{_FIX}"))
    if found.format_version != FORMAT_VERSION:
        raise UserError(f"{path} has format version {found.format_version}, this program reads "
                        f"{FORMAT_VERSION}; {_FIX}")
    names = [value.name for value in found.state]
    if len(set(names)) < len(names) or STEP not in names:
        raise UserError(f"{path} is damaged: its state has no {STEP}, or a name twice; {_FIX}")
    return found
