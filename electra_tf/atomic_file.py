"""Files that are complete or do not exist: a temporary name, fsync, then a rename."""

import contextlib
import errno
import os
from collections.abc import Iterator

from electra_tf.command_line import UserError
from electra_tf.storage import Path, RemotePath

TEMPORARY_PREFIX = ".unfinished-"
_FIXES = {
    errno.ENOSPC: "free some space or choose another directory",
    errno.EDQUOT: "the disk quota is used up: free some space or choose another directory",
    errno.EFBIG: "raise the file size limit (ulimit -f) or choose another directory",
    errno.EACCES: "choose a directory that you may write to",
    errno.EPERM: "choose a directory that you may write to",
    errno.EROFS: "the file system is read-only: choose another directory",
    errno.ENOTDIR: "a part of this path is a file: choose another directory",
    errno.EEXIST: "a file of that name is in the way: choose another directory",
}


def write_error(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a path that could not be written, with the fix."""
    fix = _FIXES.get(error.errno, "choose another directory")
    return UserError(f"cannot write {path}: {error.strerror or error}; {fix}.")


def make_directory(path: Path) -> None:
    """Creates a directory and its parents; raises UserError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, renamed to it after the block ends well.

    The content reaches the disk before the rename. After an error nothing is left behind, and a
    process killed in between leaves only a file named `.unfinished-...`.

    Raises:
        UserError: the directory is full or may not be written to.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    try:
        yield temporary
        flush_to_disk(temporary)
        temporary.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` to `path` as a whole or not at all; raises UserError if impossible."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def remove_unfinished(directory: Path) -> None:
    """Removes what killed processes left behind in a directory that no other process writes."""
    for path in directory.glob(f"{TEMPORARY_PREFIX}*"):
        path.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Returns when a file's content, or a directory's names, would outlast a power cut."""
    if isinstance(path, RemotePath):  # Written when it was closed.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
