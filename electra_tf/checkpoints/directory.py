"""A directory of checkpoints: which are there, and which of them are whole.

    ckpt-60.data-00000-of-00001    values
    ckpt-60.index                  their names, shapes and places
    ckpt-60.json                   the seal, written last: size and SHA-256 of the other files
    checkpoint                     the newest one's name, for TensorFlow's own tools

The seals decide which checkpoints count, never the file `checkpoint`. A checkpoint without a seal
was not finished.
"""

import contextlib
import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence

from electra_tf.platform import storage, strict_json
from electra_tf.platform.atomic_file import flush_to_disk, write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, file_sha256, remove_tree

_FILE = re.compile(r"ckpt-([0-9]{1,18})(_temp|\.index|\.json|\.data-[0-9]{5}-of-[0-9]{5})")
_PATTERN = re.compile(r"[][*?\\]")
_POINTER = "checkpoint"
_MOST_NAMED = 5
_MOST_SEAL_BYTES = 1 << 20
"""A file takes 120: room for 8,000 of them."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SealedFile:
    """A file that a seal vouches for."""

    __pydantic_config__ = strict_json.STRICT
    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Seal:
    """What the seal of a checkpoint says: its files by name."""

    __pydantic_config__ = strict_json.STRICT
    step: int
    files: dict[str, _SealedFile]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint, and what is wrong with those that are newer."""

    directory: Path
    step: int
    note: str = ""
    """One line that names newer ones that are damaged; empty if there are none."""

    @property
    def prefix(self) -> str:
        """What TensorFlow calls the checkpoint: the path of its files without their endings."""
        return prefix(self.directory, self.step)


def prefix(directory: Path, step: int) -> str:
    """Returns what TensorFlow calls the checkpoint of a step."""
    return str(directory / f"ckpt-{step}")


@contextlib.contextmanager
def found_by_tensorflow(prefix: str) -> Iterator[str]:
    """Yields a checkpoint's prefix in a form that TensorFlow's readers take.

    They look for the files by a pattern, so a directory that is called "[run]" is never found under
    its own name.
    """
    if not _PATTERN.search(prefix) or storage.is_remote(prefix):
        yield prefix
        return
    directory, name = os.path.split(os.path.abspath(prefix))
    with tempfile.TemporaryDirectory(prefix="electra-") as scratch:
        link = os.path.join(scratch, "checkpoints")
        os.symlink(directory, link)
        yield os.path.join(link, name)


def steps(directory: Path) -> list[int]:
    """Returns the steps of which any file is there, newest first."""
    return sorted({step for step, _ in _files(directory)}, reverse=True)


def was_used(directory: Path) -> bool:
    """Tells whether a checkpoint was ever finished here, as far as its traces are left."""
    return bool(finished(directory)) or (directory / _POINTER).exists()


def newest(directory: Path) -> Checkpoint | None:
    """Returns the newest whole checkpoint; None if none was ever finished.

    Raises:
        UserError: checkpoints were finished, and none is whole any more.
    """
    broken, damaged = [], False
    for step in steps(directory):
        fault = _fault(directory, step)
        if fault is None:
            return Checkpoint(directory=directory, step=step, note=broken and (
                f"{directory}: {listed(broken)}; the newest whole checkpoint is that of step "
                f"{step:,}, and work goes on from there.") or "")
        broken.append(f"ckpt-{step} {fault}")
        damaged |= _seal_of(directory, step).exists()
    if damaged or (directory / _POINTER).exists():
        raise lost(directory, broken)
    return None


def finished(directory: Path) -> list[int]:
    """Returns the steps of sealed checkpoints, newest first; their files aren't read."""
    return [step for step in steps(directory) if _seal_of(directory, step).exists()]


def of_step(directory: Path, step: int) -> Checkpoint:
    """Returns the checkpoint of a step; `UserError` if it isn't there or isn't whole."""
    fault = _fault(directory, step)
    if fault is not None:
        raise lost(directory, [f"ckpt-{step} {fault}"])
    return Checkpoint(directory=directory, step=step)


def lost(directory: Path, broken: Sequence[str] = ()) -> UserError:
    """Returns the error of a run that was trained and can't go on, with the ways out."""
    there = listed(broken) if broken else "none is left"
    return UserError(
        f"{directory} holds no whole checkpoint of this run, which was trained before: {there}. "
        "Put one back from a copy; or begin again with --restart, or in a new --model_dir.")


def seal(directory: Path, step: int) -> None:
    """Says that a checkpoint is whole: brings its files to the disk, then writes their checksums.

    Raises:
        UserError: the directory can't be written.
    """
    files = {}
    for path in _files_of(directory, step):
        flush_to_disk(path)
        files[path.name] = _SealedFile(bytes=path.stat().st_size, sha256=file_sha256(path))
    content = json.dumps(dataclasses.asdict(_Seal(step=step, files=files)), indent=1) + "\n"
    write_atomically(_seal_of(directory, step), content.encode())
    pointer = f'model_checkpoint_path: "ckpt-{step}"\nall_model_checkpoint_paths: "ckpt-{step}"\n'
    write_atomically(directory / _POINTER, pointer.encode())


def remove(directory: Path, doomed: Collection[int]) -> None:
    """Removes the checkpoints of some steps, and what killed processes left of them."""
    for step, path in _files(directory):
        if step in doomed and path.name.endswith(".json"):
            path.unlink(missing_ok=True)  # First: the rest is no checkpoint any more.
    for step, path in _files(directory):
        if step in doomed:
            remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _seal_of(directory: Path, step: int) -> Path:
    return directory / f"ckpt-{step}.json"


def _files(directory: Path) -> list[tuple[int, Path]]:
    """Returns the step and path of all files, and directories, of checkpoints."""
    if not directory.is_dir():
        return []
    matches = ((_FILE.fullmatch(path.name), path) for path in directory.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)


def _files_of(directory: Path, step: int) -> list[Path]:
    """Returns the files that a seal vouches for."""
    return [path for found, path in _files(directory)
            if found == step and not path.name.endswith((".json", "_temp"))]


def _fault(directory: Path, step: int) -> str | None:
    """Returns what is wrong with a checkpoint, in words that follow its name; None if nothing."""
    content = _read_seal(directory, step)
    if content is None:
        return "was not finished"
    for name, expected in content.files.items():
        path = directory / name
        if not path.is_file():
            return f"lacks {name}"
        if path.stat().st_size != expected.bytes:
            sizes = f"{path.stat().st_size:,} bytes, not {expected.bytes:,}"
            return f"is damaged ({name} has {sizes})"
        if file_sha256(path) != expected.sha256:
            return f"is damaged ({name} has another checksum)"
    return None if content.files else "is damaged (its .json file isn't what was written)"


def _read_seal(directory: Path, step: int) -> _Seal | None:
    """Returns what `seal` wrote, without files if that is damaged; None if there is no seal."""
    path = _seal_of(directory, step)
    if not path.exists():
        return None
    nothing = _Seal(step=step, files={})
    try:
        found = strict_json.read(path, _Seal, most=_MOST_SEAL_BYTES)
    except UserError:
        return nothing
    valid = (found.step == step and len(found.files) > 1 and f"ckpt-{step}.index" in found.files
             and all(map(_FILE.fullmatch, found.files)))
    return found if valid else nothing


def listed(names: Sequence[str]) -> str:
    """Returns the first names, and the number of the others."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
