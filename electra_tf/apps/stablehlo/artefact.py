"""Stores a lifted step as step.stablehlo, step.json (its layout) and step.npz (a state).

Another machine needs only these files and the records to train, and no TensorFlow.
"""

import dataclasses
import hashlib
import tokenize
import zipfile
import zlib
from collections.abc import Mapping

import numpy as np

from electra_tf.platform import atomic_file, strict_json
from electra_tf.platform.errors import UserError, one_line, shown
from electra_tf.platform.storage import MIB, Path

FORMAT_VERSION = 1
STEP = "step"
"""Name of the state's counter of steps, int64 []."""
SUFFIX = ".stablehlo"
_MOST_BYTES = 16 * MIB
"""Largest layout: ELECTRA-Large's has 1,400 tensors of state, 150 bytes each."""
_FIX = "export the step again with `python -m electra_tf.apps.stablehlo.compile_step --export`."

State = Mapping[str, np.ndarray]
"""Name -> value of all of a layout's state."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Value:
    """A tensor that is an argument of the step."""

    __pydantic_config__ = strict_json.STRICT

    name: str
    shape: tuple[int, ...]
    dtype: str
    """NumPy's name."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StateValue(Value):
    """A tensor of the state."""

    result: int | None
    """Index of the result that is its new value; None if a step does not change it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """The settings with which a run reads its records, as in `electra_tf.data.pipeline`."""

    __pydantic_config__ = strict_json.STRICT

    fingerprint: str
    """Hash of the records."""
    seed: int
    shuffle_buffer: int
    length: int
    """L."""
    pad_id: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layout:
    """The description of a step as a pure function: (batch, state) -> (results, new state).

    Its arguments are `batch`, then `state`. Its first results are `results`, scalars; `state` names
    the results that are new values of the state.
    """

    __pydantic_config__ = strict_json.STRICT

    format_version: int
    sha256: str
    """Hash of the StableHLO, hexadecimal."""
    batch_size: int
    """B, the global batch."""
    num_train_steps: int
    batch: tuple[Value, ...]
    """Tensors [B, ...]."""
    state: tuple[StateValue, ...]
    """Weights, optimizer slots, the step."""
    results: tuple[str, ...]
    """"loss/sum", "loss/weight" and so on: sums and weights of means, float32 []."""
    reading: Reading | None
    """None for a step that was made without records."""

    def means(self, results: Mapping[str, float]) -> dict[str, float]:
        """Returns losses and statistics from `results`, which are sums over any steps."""
        names = [name.removesuffix("/sum") for name in self.results if name.endswith("/sum")]
        return {name: results[f"{name}/sum"] / max(results[f"{name}/weight"], 1.0)
                for name in names}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LiftedStep:
    """A training step as a pure function."""

    module: bytes
    """StableHLO's portable form."""
    layout: Layout


def require_name(path: Path) -> None:
    """Raises a `UserError` unless a path ends in .stablehlo."""
    if path.suffix != SUFFIX:
        raise UserError(f"the file of a step ends in {SUFFIX}. Received: {shown(str(path))}")


def write(step: LiftedStep, path: Path) -> None:
    """Writes a step to a file that ends in .stablehlo, and its layout beside it."""
    atomic_file.make_directory(path.parent)
    atomic_file.write_atomically(path, step.module)
    atomic_file.write_atomically(
        path.with_suffix(".json"), strict_json.dumps(step.layout, Layout) + b"\n")


def read(path: Path) -> LiftedStep:
    """Reads what `write` wrote; `UserError` if a file is missing, damaged or of another step."""
    require_name(path)
    beside = path.with_suffix(".json")
    layout = strict_json.read(beside, Layout, most=_MOST_BYTES, fix=_FIX, absent=(
        f"{beside} does not exist: a step is three files side by side, .stablehlo, .json and "
        f".npz; {_FIX}"))
    if layout.format_version != FORMAT_VERSION:
        raise UserError(f"{beside} has format version {layout.format_version}, this program reads "
                        f"{FORMAT_VERSION}; {_FIX}")
    if STEP not in {value.name for value in layout.state}:
        raise UserError(f"{beside} is damaged: its state has no {STEP}; {_FIX}")
    try:
        module = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}; {_FIX}") from None
    if hashlib.sha256(module).hexdigest() != layout.sha256:
        raise UserError(f"{path} isn't the step that {beside.name} describes; {_FIX}")
    return LiftedStep(module=module, layout=layout)


def write_state(state: State, layout: Layout, path: Path) -> None:
    """Writes a state in the layout's order, as a whole or not at all."""
    with atomic_file.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{value.name: state[value.name] for value in layout.state})


def read_state(path: Path, layout: Layout) -> dict[str, np.ndarray]:
    """Reads what `write_state` wrote; `UserError` if it is missing, damaged or of another step.

    Names, shapes and types are compared with the layout before the values are read: a damaged
    header cannot ask for more memory than the state has.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            _require_same(path, archive, layout)
            return {value.name: np.lib.format.read_array(
                archive.open(f"{value.name}.npy"), allow_pickle=False) for value in layout.state}
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; --export and run_step write states.") from None
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, SyntaxError,
            zipfile.BadZipFile, zlib.error, tokenize.TokenError) as error:
        raise UserError(f"{path} is damaged: {one_line(str(error), 200)}; take an earlier state, "
                        "or export the step again.") from error


def _require_same(path: Path, archive: zipfile.ZipFile, layout: Layout) -> None:
    wanted = {f"{value.name}.npy": value for value in layout.state}
    found = archive.namelist()
    for name in (*wanted.keys() - set(found), *set(found) - wanted.keys()):
        there = "lacks" if name in wanted else "has"
        raise UserError(f"{path} isn't a state of this step: it {there} "
                        f"{shown(name.removesuffix('.npy'))}.")
    for name, value in wanted.items():
        with archive.open(name) as file:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):  # NumPy writes others for structured types only.
                raise ValueError(f"{name} has the format {version}")
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        if shape != value.shape or dtype.name != value.dtype:
            raise UserError(f"{path} isn't a state of this step: {value.name} is {dtype.name} "
                            f"{list(shape)}, not {value.dtype} {list(value.shape)}.")
