"""Tensors as JSON writes them: nested lists of numbers, booleans and strings.

The mapping is TensorFlow Serving's (its "RESTful API" page, "JSON mapping"): bytes are
{"b64": "..."}, numbers may be NaN, Infinity and -Infinity, and nothing is converted silently.
"""

import base64
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.apps.serving.errors import RequestError

_MAX_RANK = 32
"""NumPy's and TensorFlow's own limits are higher; no model has so many."""


def is_bytes(value: Any) -> bool:
    """Whether a JSON value is an object that stands for bytes."""
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def to_array(value: Any, spec: tf.TensorSpec) -> np.ndarray:
    """Returns the tensor that a JSON value writes out.

    Args:
        value: what the JSON parser made of it; lists all of one length on each level.
        spec: the input's name, type and shape (None for sizes that may be any).

    Raises:
        RequestError: ragged lists, another type, a number that doesn't fit, another shape.
    """
    shape, leaves = _flatten(value, spec.name)
    if len(shape) > _MAX_RANK:
        raise RequestError(f"input {spec.name!r} has more than {_MAX_RANK} dimensions")
    if not spec.shape.is_compatible_with(shape):
        raise RequestError(f"input {spec.name!r} must have the shape {_shown(spec.shape)}. "
                           f"Received: {_shown(tf.TensorShape(shape))}")
    convert = _converter(spec.dtype)
    try:
        converted = [convert(leaf) for leaf in leaves]
    except (TypeError, OverflowError, ValueError) as error:
        raise RequestError(f"input {spec.name!r}: {error}") from error
    array = np.empty(len(leaves), object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype)
    array[:] = converted
    return array.reshape(shape)


def to_json(array: np.ndarray, name: str) -> Any:
    """Returns an output as nested lists.

    Args:
        array: numbers, booleans, or `bytes` objects.
        name: of the output; bytes are written as base64 if it ends in "_bytes", else as text in
            which bytes that aren't UTF-8 become U+FFFD.

    Raises:
        RequestError: JSON has no such type.
    """
    if array.dtype == object:
        write = _base64_object if name.endswith("_bytes") else _text
        return np.vectorize(write, otypes=[object])(array).tolist()
    dtype = tf.as_dtype(array.dtype)
    if dtype.is_floating and dtype != tf.float64:
        # By way of the shortest decimal: 0.1 in float32 is 0.1, not 0.10000000149011612.
        wide = array if dtype in (tf.float16, tf.float32) else array.astype(np.float32)
        return wide.astype(str).astype(np.float64).tolist()
    if dtype.is_bool or dtype.is_integer or dtype.is_floating:
        return array.tolist()
    raise RequestError(f"output {name!r} is of type {dtype.name}, which JSON can't hold", 501)


def _flatten(value: Any, name: str) -> tuple[list[int], list[Any]]:
    """Level by level, not by recursion: the depth is the client's choice."""
    shape, level = [], [value]
    while level and isinstance(level[0], list):
        sizes = {len(item) if isinstance(item, list) else None for item in level}
        if len(sizes) > 1:
            break
        shape.append(len(level[0]))
        level = [leaf for item in level for leaf in item]
    if any(isinstance(item, list) for item in level):
        raise RequestError(f"input {name!r} is ragged: at depth {len(shape)} its lists differ in "
                           "length, or values stand beside lists")
    return shape, level


def _shown(shape: tf.TensorShape) -> str:
    if shape.rank is None:
        return "[...]"
    return "[" + ", ".join("any" if size is None else str(size) for size in shape) + "]"


def _converter(dtype: tf.DType) -> Callable[[Any], Any]:
    if dtype == tf.string:
        return _to_bytes
    if dtype.is_bool:
        return _to_bool
    if dtype.is_integer and not dtype.is_quantized:
        limits = np.iinfo(dtype.as_numpy_dtype)
        return lambda leaf: _to_int(leaf, limits)
    if dtype.is_floating:
        largest = float(dtype.max)
        return lambda leaf: _to_float(leaf, largest)
    raise RequestError(f"inputs of type {dtype.name} can't be written in JSON", 501)


def _to_bytes(leaf: Any) -> bytes:
    if isinstance(leaf, str):
        return leaf.encode("utf-8")
    if is_bytes(leaf):
        return _from_base64(leaf["b64"])
    raise TypeError(f'must hold strings, or {{"b64": "..."}} for bytes. Received: {_kind(leaf)}')


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:  # Of other characters than ASCII's, too.
        raise ValueError(f"isn't base64: {error}") from error


def _to_bool(leaf: Any) -> bool:
    if not isinstance(leaf, bool):
        raise TypeError(f"must hold true and false. Received: {_kind(leaf)}")
    return leaf


def _to_int(leaf: Any, limits: np.iinfo) -> int:
    if isinstance(leaf, bool) or not isinstance(leaf, int):
        raise TypeError(f"must hold whole numbers. Received: {_kind(leaf)}")
    if not limits.min <= leaf <= limits.max:
        raise OverflowError(f"must hold whole numbers from {limits.min} to {limits.max}")
    return leaf


def _to_float(leaf: Any, largest: float) -> float:
    if isinstance(leaf, bool) or not isinstance(leaf, int | float):
        raise TypeError(f"must hold numbers. Received: {_kind(leaf)}")
    if math.isfinite(number := float(leaf)) and abs(number) > largest:
        raise OverflowError(f"must hold numbers up to {largest} in size")
    return number


def _kind(leaf: Any) -> str:
    """What JSON calls a value; the value itself may be long."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false",
             int: "a number", float: "a number with a fraction", type(None): "null"}
    return names[type(leaf)]


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")


def _base64_object(value: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(value).decode("ascii")}
