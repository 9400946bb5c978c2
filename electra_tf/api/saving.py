"""Writes networks into new directories, whole or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterator

from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format, Pretrained
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError


def write(networks: Pretrained, directory: str | os.PathLike[str], form: Format) -> None:
    """Writes networks in a format; `UserError` if the directory exists or can't hold them."""
    with new_directory(directory) as unfinished:
        pretrained.write(networks, unfinished, form)


@contextlib.contextmanager
def new_directory(directory: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yields a directory to write, which gets the name at the end; `UserError` if it exists."""
    target = storage.path(directory)
    if target.exists():
        raise UserError(f"{target} exists already; name a new directory.")
    with atomic_directory(target) as unfinished:
        yield unfinished
