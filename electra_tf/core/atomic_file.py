"""Files that are complete or do not exist, and directories that one process at a time writes to."""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from typing import Any

from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path, RemotePath

TEMPORARY_PREFIX = ".unfinished-"
_FULL = "free some space, or choose another directory"
_TAKEN = "choose another name"
_FIXES = {
    errno.ENOSPC: _FULL, errno.EDQUOT: _FULL, errno.EFBIG: _FULL,
    errno.EEXIST: _TAKEN, errno.EISDIR: _TAKEN, errno.ENAMETOOLONG: _TAKEN,
    errno.ENOTEMPTY: "another process has written it in the meantime; use that, or choose another "
                     "name"}


def write_error(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a path that could not be written, with the fix."""
    fix = _FIXES.get(error.errno, "choose another directory that you may write to")
    return UserError(f"cannot write {path}: {error.strerror or error}; {fix}.")


def make_directory(path: Path) -> None:
    """Creates a directory and its parents, or raises `UserError`."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, error) from error


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path`, and renames it to `path` if the block succeeds.

    The content reaches the disk before the rename. Raises `UserError` if it can't be written. A
    killed process leaves only a file named `.unfinished-...`.
    """
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}-{path.name}")
    try:
        # Content, rename, directory: after a power failure the name has the old or the new content.
        yield temporary
        flush_to_disk(temporary)
        temporary.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_unfinished(directory: Path) -> None:
    """Removes temporary files of killed processes; the caller holds the lock of the directory."""
    for path in directory.glob(f"{TEMPORARY_PREFIX}*"):
        if not path.is_dir():  # Exports, which hold no lock, remove directories.
            path.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Writes `content` to `path` as a whole, or raises `UserError`."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def flush_to_disk(path: Path) -> None:
    """Makes a file's content, or the names in a directory, survive a power failure."""
    if isinstance(path, RemotePath):  # Closing a remote file stores it.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Any) -> None:
    """Writes a value as strict JSON, as `write_atomically` does."""
    write_atomically(path, (json.dumps(plain(content), indent=1) + "\n").encode())


def plain(value: Any) -> Any:
    """Returns a value as JSON stores it; NaN and infinities become None."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


@contextlib.contextmanager
def lock_directory(directory: Path, busy: str) -> Iterator[None]:
    """Holds the lock of an existing directory, or raises `UserError` with the message `busy`.

    The operating system releases the lock of an ended process. Remote directories are not locked.
    """
    if isinstance(directory, RemotePath):
        yield
        return
    # The lock belongs to the open file, so the kernel frees it when a process is killed.
    path = directory / ".lock"
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("ab"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_nlink == 0:  # Its holder has removed it meanwhile.
                raise BlockingIOError
        except BlockingIOError:
            raise UserError(busy) from None
        except OSError as error:
            raise write_error(directory, error) from error
        stack.callback(path.unlink, missing_ok=True)
        yield
