"""Writes directories completely or not at all."""

import contextlib
import os
import pathlib
import shutil
import tempfile
import time
from collections.abc import Iterator

from electra_tf.core.atomic_file import TEMPORARY_PREFIX, make_directory, write_error
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path, RemotePath, os_errors

ABANDONED_SECONDS = 3600.0
"""Age from which an unfinished directory is of a killed export: no export takes that long."""


@contextlib.contextmanager
def atomic_directory(final: Path) -> Iterator[pathlib.Path]:
    """Yields the path of a local directory to make, which becomes `final` when the block ends well.

    Remote file systems cannot rename directories. Files are copied to them, saved_model.pb last,
    because no server loads a model without it. Raises `UserError` if `final` exists, or can't be
    written.
    """
    if final.exists():
        raise UserError(f"{final} exists already; name a new directory.")
    # A neighbour of `final`, or a temporary directory if that is on another machine.
    make_directory(final.parent)
    remote = isinstance(final, RemotePath)
    for abandoned in () if remote else final.parent.glob(f"{TEMPORARY_PREFIX}*"):
        if time.time() - abandoned.stat().st_mtime > ABANDONED_SECONDS:
            shutil.rmtree(abandoned, ignore_errors=True)
    unfinished = (pathlib.Path(tempfile.mkdtemp(prefix="electra-"), final.name) if remote
                  else final.with_name(f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}-{final.name}"))
    try:
        with os_errors(final):
            yield unfinished
            if not remote:
                unfinished.rename(final)
                return
            # A remote directory is copied file by file.
            files = [path for path in unfinished.rglob("*") if path.is_file()]
            for path in sorted(files, key=lambda path: path.name == "saved_model.pb"):
                copy = final / str(path.relative_to(unfinished))
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(path.read_bytes())
    except OSError as error:
        raise write_error(final, error) from error
    finally:
        shutil.rmtree(unfinished.parent if remote else unfinished, ignore_errors=True)
