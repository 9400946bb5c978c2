"""Files of named arrays (.npz) that the stages of cleaning leave for each other."""

import contextlib
import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from electra_tf.platform import atomic_file
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path, cannot_read


def save(path: Path, arrays: Mapping[str, Any]) -> None:
    """Writes arrays by name, atomically; raises UserError if it can't."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    atomic_file.write_atomically(path, content.getvalue())


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Mapping[str, np.ndarray]]:
    """Yields the arrays of a file, read on demand; `UserError` if it is damaged or incomplete."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            yield found
    except OSError as error:
        raise cannot_read(path, error) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile,
            zlib.error) as error:
        raise UserError(f"{path} is damaged; remove it and give the same command again.") from error
