"""A lifted step as files: step.stablehlo, step.json (its layout) and step.npz (a state).

What another machine needs to train. None of it holds anything of TensorFlow's.
"""

import dataclasses
import hashlib
import zipfile
from collections.abc import Mapping

import numpy as np

from electra_tf.apps.stablehlo import layout as layouts
from electra_tf.apps.stablehlo.layout import STEP, Layout
from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

SUFFIX = ".stablehlo"
State = Mapping[str, np.ndarray]
"""Name -> value of all of a layout's state."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class LiftedStep:
    """A training step as a pure function."""

    module: bytes
    """StableHLO's portable form."""
    layout: Layout


def require_name(path: Path) -> None:
    """Raises `UserError` unless a path is one that `write` takes."""
    if path.suffix != SUFFIX:
        raise UserError(f"the file of a step ends in {SUFFIX}, for example step{SUFFIX}. "
                        f"Received: {shown(str(path))}")


def write(step: LiftedStep, path: Path) -> None:
    """Writes a step, the layout last; its state is written by `write_state`.

    Args:
        step: what to write.
        path: ends in ".stablehlo"; the layout goes beside it.
    """
    atomic_file.make_directory(path.parent)
    atomic_file.write_atomically(path, step.module)
    with atomic_file.replacing(path.with_suffix(".json")) as temporary:
        layouts.write(step.layout, temporary)


def read(path: Path) -> LiftedStep:
    """Reads what `write` wrote.

    Raises:
        UserError: something is missing or damaged, or the files don't belong together.
    """
    require_name(path)
    found = layouts.read(path.with_suffix(".json"))
    try:
        module = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}; export the step again.") from None
    if hashlib.sha256(module).hexdigest() != found.sha256:
        raise UserError(f"{path} isn't the step that {path.with_suffix('.json').name} describes; "
                        "export both again.")
    return LiftedStep(module=module, layout=found)


def write_state(state: State, layout: Layout, path: Path) -> None:
    """Writes a state in the layout's order, as a whole or not at all."""
    with atomic_file.replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **{value.name: state[value.name] for value in layout.state})


def read_state(path: Path, layout: Layout) -> dict[str, np.ndarray]:
    """Reads what `write_state` wrote.

    Raises:
        UserError: no such file, damaged, or of another step.
    """
    try:
        with np.load(path) as file:
            state = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; a state is what --export and run_step write."
                        ) from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} is damaged: {error}; take an earlier state, or export the step "
                        "again.") from error
    _require_same(path, state, layout)
    return state


def step_of(state: State) -> int:
    """Returns how many steps led to a state."""
    return int(state[STEP])


def _require_same(path: Path, state: State, layout: Layout) -> None:
    wanted = {value.name: value for value in layout.state}
    for name in (*wanted.keys() - state.keys(), *state.keys() - wanted.keys()):
        there = "lacks" if name in wanted else "has"
        raise UserError(f"{path} isn't a state of this step: it {there} {shown(name)}.")
    for name, value in wanted.items():
        found = state[name]
        if found.shape != value.shape or found.dtype.name != value.dtype:
            raise UserError(
                f"{path} isn't a state of this step: {name} is {found.dtype.name} "
                f"{list(found.shape)}, not {value.dtype} {list(value.shape)}.")
