"""Lists, checks, seals and removes the checkpoints of a directory.

    ckpt-60.data-00000-of-00001    values
    ckpt-60.index                  their names, shapes and offsets
    ckpt-60.json                   the seal, written last: size and SHA-256 of the other files
    checkpoint                     the newest one's name, for TensorFlow's own tools

A checkpoint without a seal was not finished and is not restored.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any

from electra_tf.core import strict_json
from electra_tf.core.atomic_file import flush_to_disk, write_atomically, write_json
from electra_tf.core.errors import UserError, note_once
from electra_tf.core.storage import Path, file_sha256, remove_tree

_FILE = re.compile(r"ckpt-([0-9]{1,18})(_temp|\.index|\.json|\.data-[0-9]{5}-of-[0-9]{5})")
_POINTER = "checkpoint"


def prefix(directory: Path, step: int) -> str:
    """Returns the path of a checkpoint's files without their endings, as TensorFlow takes it."""
    return str(directory / f"ckpt-{step}")


def steps(directory: Path) -> list[int]:
    """Returns the steps of which any file exists, newest first."""
    return sorted({step for step, _ in _files(directory)}, reverse=True)


def sealed_steps(directory: Path) -> list[int]:
    """Returns the steps of sealed checkpoints, newest first, without reading their files."""
    return [step for step in steps(directory) if (directory / f"ckpt-{step}.json").exists()]


def was_used(directory: Path) -> bool:
    """Returns True if the directory has a sealed checkpoint, or the file that names the newest."""
    return bool(sealed_steps(directory)) or (directory / _POINTER).exists()


def newest_step(directory: Path) -> int | None:
    """Returns the step of the newest intact checkpoint, and prints which newer ones are damaged.

    Returns None if none was ever finished; raises `UserError` if all are damaged or removed.
    """
    # Newest first, up to the first one that is intact.
    faults: list[str] = []
    for step in steps(directory):
        fault = _fault(directory, step)
        if fault is None:
            if faults:
                note_once(f"{directory}: {first_five(faults)}; continuing from the newest "
                          f"complete checkpoint, step {step:,}.")
            return step
        faults.append(f"ckpt-{step} {fault}")
    if was_used(directory):
        raise lost_error(directory, faults)
    return None


def require_intact(directory: Path, step: int) -> None:
    """Raises `UserError` if the checkpoint of a step is missing or damaged."""
    fault = _fault(directory, step)
    if fault is not None:
        raise lost_error(directory, [f"ckpt-{step} {fault}"])


def lost_error(directory: Path, faults: Sequence[str] = ()) -> UserError:
    """Returns the error of a trained run without an intact checkpoint, with the fixes."""
    return UserError(
        f"{directory} holds no complete checkpoint of this run, although it was trained: "
        f"{first_five(faults) or 'none is left'}. Restore one from a copy, begin again with "
        "--restart, or name a new --model_dir.")


def seal(directory: Path, step: int) -> None:
    """Flushes the files of a checkpoint to the disk, then writes their checksums."""
    # The values and their index are on the disk before the seal names their checksums.
    paths = [path for file_step, path in _files(directory)
             if file_step == step and not path.name.endswith((".json", "_temp"))]
    for path in paths:
        flush_to_disk(path)
    write_json(directory / f"ckpt-{step}.json", {"step": step, "files": {
        path.name: _description(path) for path in paths}})


def retain(directory: Path, step: int, keep: int) -> None:
    """Writes which step is the newest; unless `keep` is 0, removes older than the newest `keep`."""
    pointer = f'model_checkpoint_path: "ckpt-{step}"\nall_model_checkpoint_paths: "ckpt-{step}"\n'
    write_atomically(directory / _POINTER, pointer.encode())
    if keep:  # Steps above this one are of damaged checkpoints, which stay.
        retained = [sealed for sealed in sealed_steps(directory) if sealed <= step][:keep]
        remove(directory, {older for older in steps(directory) if older < step}
               .difference(retained))


def _description(path: Path) -> dict[str, int | str]:
    return {"bytes": path.stat().st_size, "sha256": file_sha256(path)}


def remove(directory: Path, unwanted: Collection[int]) -> None:
    """Removes the checkpoints of some steps, also unfinished ones of killed processes."""
    paths = [path for step, path in _files(directory) if step in unwanted]
    # Seals first: if the process is killed here, the other files count as unfinished.
    for path in sorted(paths, key=lambda path: path.suffix != ".json"):
        remove_tree(path) if path.is_dir() else path.unlink(missing_ok=True)


def first_five(faults: Sequence[str]) -> str:
    """Returns the first five of some words, and how many more there are."""
    return ", ".join(faults[:5]) + (f" and {len(faults) - 5} more" if len(faults) > 5 else "")


def _files(directory: Path) -> list[tuple[int, Path]]:
    """Returns the step and path of all files, and directories, of checkpoints."""
    if not directory.is_dir():
        return []
    matches = ((_FILE.fullmatch(path.name), path) for path in directory.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)


def _fault(directory: Path, step: int) -> str | None:
    """Returns the fault of a checkpoint, as words that follow its name; None if it is intact."""
    # The seal, which was written last, names the other files.
    path = directory / f"ckpt-{step}.json"
    if not path.exists():
        return "was not finished"
    try:
        content = strict_json.read(path, dict[str, Any])
        is_complete = content.keys() == {"step", "files"} and content["step"] == step
        files = dict(content["files"]) if is_complete else {}
    except (UserError, KeyError, TypeError, ValueError):
        files = {}
    if f"ckpt-{step}.index" not in files:
        return "is damaged (its .json file has changed)"

    # Every file has the size and the checksum of the seal.
    for name, expected in files.items():
        path = directory / name
        if not path.is_file():
            return f"lacks {name}"
        if expected != _description(path):
            return f"is damaged ({name} has changed)"
    return None
