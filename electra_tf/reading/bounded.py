"""Files read up to a limit: an endless one, or one of another kind, can't fill the memory."""

import errno

from electra_tf.errors import UserError, shown
from electra_tf.storage import Path

MIB = 1 << 20


def read_bytes(path: Path, most: int) -> bytes:
    """Returns a file's content.

    Args:
        path: of the file.
        most: bytes that a file of its kind can have.

    Raises:
        UserError: it has more.
        OSError: it can't be read; also where the name can't be one.
    """
    try:
        file = path.open("rb")
    except ValueError as error:  # A NUL character.
        raise OSError(errno.EINVAL, f"no name of a file, {shown(str(path))}") from error
    with file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(f"{path} is larger than {_size(most)}, which no file of its kind is; name "
                        "the right file.")
    return content


def cannot_read(path: Path, error: OSError) -> UserError:
    """Returns the one-line error for a file that couldn't be read."""
    return UserError(f"cannot read {path}: {error.strerror or error}.")


def _size(count: int) -> str:
    return f"{count // MIB} MiB" if count >= MIB else f"{count // 1024} KiB"
