"""A lock that admits one process to a directory."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

from electra_tf.platform.atomic_file import write_error
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, RemotePath

LOCK_FILE = ".lock"


@contextlib.contextmanager
def only_process(directory: Path, busy: str) -> Iterator[None]:
    """Holds the lock of an existing directory, which the operating system releases at the latest.

    Remote file systems have no locks: all processes are admitted there.

    Raises:
        UserError: with the message `busy`, another process holds the lock; or the directory isn't
            writable.
    """
    if isinstance(directory, RemotePath):
        yield
        return
    path = directory / LOCK_FILE
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
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)  # The process before removed it in the meantime.
