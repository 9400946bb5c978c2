"""Directories that one process at a time writes to."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from electra_tf.platform.atomic_file import write_error
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, RemotePath


@contextlib.contextmanager
def only_process(directory: Path, busy: str) -> Iterator[None]:
    """Holds the lock of an existing directory, or raises `UserError` with the message `busy`.

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
