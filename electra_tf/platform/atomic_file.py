"""Files that are complete or do not exist, in directories that one process at a time writes to."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, RemotePath

TEMPORARY_PREFIX = ".unfinished-"
_FIXES = {
    errno.ENOSPC: "free some space or ", errno.EDQUOT: "free some space or ",
    errno.EFBIG: "raise the file size limit (ulimit -f) or ",
    errno.EROFS: "the file system is read-only: ", errno.ENOTDIR: "a part of this path is a file: ",
    errno.EEXIST: "a file of that name is in the way: "}


def write_error(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a path that could not be written, with the fix."""
    return UserError(f"cannot write {path}: {error.strerror or error}; "
                     f"{_FIXES.get(error.errno, '')}choose another directory that "
                     "you may write to.")


def make_directory(path: Path) -> None:
    """Creates a directory and its parents; raises UserError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, renamed to it after the block ends well.

    The content reaches the disk before the rename. An error removes the temporary file, and a
    killed process leaves only a file named `.unfinished-...`. Raises UserError for a full disk.
    """
    # Processes of several machines or containers can have the same number.
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
    """Removes the temporary files of killed processes; no other process may write there."""
    for path in directory.glob(f"{TEMPORARY_PREFIX}*"):
        path.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Returns when a file's content, or a directory's names, survive a power failure."""
    if isinstance(path, RemotePath):  # Written when it was closed.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def only_process(directory: Path, busy: str) -> Iterator[None]:
    """Holds the lock of an existing directory, or raises UserError with the message `busy`.

    The operating system releases the lock of an ended process. Remote file systems have none.
    """
    if isinstance(directory, RemotePath):
        yield
        return
    path = directory / ".lock"
    try:
        descriptor = _locked(path)
    except BlockingIOError:
        raise UserError(busy) from None
    except OSError as error:
        raise write_error(directory, error) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(path: Path) -> int:
    """Returns the descriptor of a locked file that still has its name."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):  # The process before removed it.
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
