"""Writes networks into new directories, whole or not at all."""

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator

import tensorflow as tf

from electra_tf.checkpoints.weights import Weights
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Checkpoint, Format


def values(variables: Iterable[tf.Variable]) -> Weights:
    """Returns the values of variables by their full names."""
    return {variable.name.split(":")[0]: variable.numpy() for variable in variables}


def write(checkpoint: Checkpoint, directory: str | os.PathLike[str], form: Format) -> None:
    """Writes networks in a format; `UserError` if the directory exists or can't hold them."""
    with new_directory(directory) as unfinished:
        pretrained.write(checkpoint, unfinished, form)


@contextlib.contextmanager
def new_directory(directory: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """Yields a directory to write, which gets the name at the end; `UserError` if it exists."""
    target = storage.path(directory)
    if target.exists():
        raise UserError(f"{target} exists already; name a new directory.")
    with atomic_directory(target) as unfinished:
        yield unfinished
