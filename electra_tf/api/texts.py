"""Checks of the texts that a caller gives."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.platform.errors import UserError, shown


def string(value: Any, what: str = "text") -> str:
    """Returns a text; bytes are UTF-8, as in tensors. Raises UserError for other values."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if not isinstance(value, str):
        raise UserError(f"{what} must be a string. Received: {shown(value)}")
    return value


def listed(values: Any, what: str = "texts") -> list[Any]:
    """Returns the elements of a list, an array or a tensor; UserError for one string."""
    if isinstance(values, tf.Tensor | np.ndarray):
        values = np.asarray(values).tolist()
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UserError(f"{what} must be a list of strings. Received: {shown(values)}")
    return list(values)
