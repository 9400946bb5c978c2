"""Files that are complete or do not exist: a temporary name, fsync, then a rename."""

import contextlib
import errno
import os
import re
import shutil
from collections.abc import Iterator

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, RemotePath

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


class DiskFull(UserError):
    """There is no room for a file."""


def write_error(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a path that could not be written, with the fix."""
    fix = _FIXES.get(error.errno, "choose another directory")
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"cannot write {path}: {reason}{_room(path)}; {fix}.")
    return UserError(f"cannot write {path}: {reason}; {fix}.")


def _room(path: Path) -> str:
    """Returns how much room is left around a path, in words; "" where nobody knows."""
    if isinstance(path, RemotePath):
        return ""
    try:
        return f" ({shutil.disk_usage(path.parent).free / 1e6:,.1f} MB are free)"
    except OSError:
        return ""


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
    # Processes of several machines, or containers, may have one number and write one file.
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(4).hex()}-{path.name}")
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


def remove_abandoned(directory: Path) -> None:
    """Removes files and directories that died processes left in a directory that others write too.

    Names tell their process; whatever belongs to one that lives stays. This process must not have
    begun to write there: a container gives every process the same number. On other file systems
    the writers may be elsewhere, and nothing is removed.
    """
    if isinstance(directory, RemotePath):
        return
    for path in directory.glob(f"{TEMPORARY_PREFIX}*"):
        owner = re.match(r"[0-9]{1,9}(?=-)", path.name.removeprefix(TEMPORARY_PREFIX))
        if owner is None or _is_another_alive(int(owner[0])):
            continue
        with contextlib.suppress(OSError):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _is_another_alive(process: int) -> bool:
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # Somebody else's.
        pass
    return True


def flush_to_disk(path: Path) -> None:
    """Returns when a file's content, or a directory's names, would outlast a power cut."""
    if isinstance(path, RemotePath):  # Written when it was closed.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
