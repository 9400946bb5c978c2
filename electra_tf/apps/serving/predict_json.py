"""Reads and writes the JSON of predict requests in TensorFlow Serving's two formats.

    {"instances": [{"text": "a", "pair": "b"}]}    {"predictions": [{"label": ..., ...}]}   rows
    {"inputs": {"text": ["a"], "pair": ["b"]}}     {"outputs": {"label": [...], ...}}       columns

Bytes are {"b64": "..."}. Numbers may be NaN, Infinity or -Infinity.
"""

import base64
import gc
import json
from typing import Any

import numpy as np
import tensorflow as tf
from starlette.exceptions import HTTPException

from electra_tf.apps.serving.models import DEFAULT_SIGNATURE, Arrays, ServedModel, Signature
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.platform.errors import shown

MAX_VALUES = 2_000_000
"""Maximum of values of a request, up to 64 bytes each: 1,024 rows of 512 tokens in three inputs."""


def parse(body: bytes, model: ServedModel, config: ServerConfig) -> tuple[Signature, Arrays, bool]:
    """Returns a request's signature, its inputs, and True for the row format.

    Invalid JSON, inputs of another signature and values beyond a limit are HTTPExceptions (400).
    """
    if sum(map(body.count, (b",", b"[", b"{"))) > MAX_VALUES:  # Counted before they take memory.
        raise HTTPException(400, f"the body may have at most {MAX_VALUES:,} values, counted by "
                                 "its commas and brackets; send several requests")
    gc.disable()  # Collections visit TensorFlow's objects: 1.1 s instead of 0.06 for 1 M lists.
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:  # Also: invalid UTF-8, too long an integer.
        raise HTTPException(400, f"the body isn't JSON: {error}") from error
    finally:
        gc.enable()
    if not isinstance(content, dict) or ("instances" in content) == ("inputs" in content):
        raise HTTPException(400, 'the body must be an object with one of "instances" (row format) '
                                 'and "inputs" (column format)')
    name = content.get("signature_name") or DEFAULT_SIGNATURE
    if not isinstance(name, str) or name not in model.signatures:
        raise HTTPException(400, f"unknown signature_name {shown(name)}; this model has "
                                 f"{', '.join(model.signatures)}")
    signature, in_rows = model.signatures[name], "instances" in content
    columns = _columns(content["instances" if in_rows else "inputs"], in_rows,
                       list(signature.inputs))
    rows = max((len(value) for value in columns.values() if isinstance(value, list)), default=0)
    if rows > config.max_request_rows:
        raise HTTPException(400, f"a request may have at most {config.max_request_rows} rows "
                                 f"(--max_request_rows). Received: {rows}")
    inputs = {name: _to_array(value, signature.inputs[name]) for name, value in columns.items()}
    longest = max((len(text) for array in inputs.values() if array.dtype == object
                   for text in array.flat), default=0)
    if longest > config.max_text_mib * 2**20:
        raise HTTPException(400, f"a text may have at most {config.max_text_mib:g} MiB "
                                 f"(--max_text_mib). Received: {longest:,} bytes")
    return signature, inputs, in_rows


def render(outputs: Arrays, in_rows: bool) -> bytes:
    """Returns the answer's JSON in the request's format.

    Rows without a common first dimension (400) and types that JSON lacks (501) are HTTPExceptions.
    """
    columns = {}
    for name, array in sorted(outputs.items()):
        dtype = tf.as_dtype(array.dtype)
        if array.dtype == object:  # Bytes become base64 if the name ends in "_bytes".
            write = ((lambda value: {"b64": base64.b64encode(value).decode("ascii")})
                     if name.endswith("_bytes") else lambda value: value.decode("utf-8", "replace"))
            array = np.vectorize(write, otypes=[object])(array)
        elif not (dtype.is_bool or dtype.is_integer or dtype.is_floating):
            raise HTTPException(501, f"JSON cannot represent output {name!r} of type {dtype.name}")
        elif dtype in (tf.float16, tf.bfloat16, tf.float32):
            # The shortest decimal that reads back as the same number, not 0.10000000149011612.
            array = array.astype(np.float32).astype(str).astype(np.float64)
        columns[name] = array.tolist()
    if not in_rows:
        answer = {"outputs": _without_name(columns)}
    elif len(sizes := {array.shape[:1] for array in outputs.values()}) > 1 or () in sizes:
        raise HTTPException(400, 'the outputs of this signature have no common first dimension; '
                                 'use the column format ("inputs")')
    else:
        answer = {"predictions": [_without_name(dict(zip(columns, row, strict=True)))
                                  for row in zip(*columns.values(), strict=True)]}
    return json.dumps(answer, ensure_ascii=False).encode("utf-8") + b"\n"


def _columns(values: Any, in_rows: bool, names: list[str]) -> dict[str, Any]:
    """Returns input -> value; a single input may lack its name."""
    if in_rows and not (isinstance(values, list) and values):
        raise HTTPException(400, "'instances' must be a list of at least one row")
    objects = values if in_rows else [values]
    if len(names) == 1 and all(not isinstance(value, dict) or _is_bytes(value)
                               for value in objects):
        return {names[0]: values}
    for number, value in enumerate(objects):
        if not isinstance(value, dict) or value.keys() != set(names):
            subject = f"row {number} of 'instances'" if in_rows else "'inputs'"
            raise HTTPException(400, f"{subject} must be an object with {', '.join(names)}. "
                                     f"Received: {shown(value)}")
    return {name: [row[name] for row in values] for name in names} if in_rows else values


def _is_bytes(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def _without_name(values: dict[str, Any]) -> Any:
    """Returns the only value if there is one, otherwise all values by name."""
    return next(iter(values.values())) if len(values) == 1 else values


def _to_array(value: Any, spec: tf.TensorSpec) -> np.ndarray:
    """Returns nested lists as an array of an input's type and shape; HTTPException if unfit."""
    leaves = np.array(value, object)  # Lists of different lengths stay lists.
    if leaves.ndim > 32 or any(  # NumPy iterates over at most 32 dimensions.
            isinstance(leaf, list) for leaf in leaves.flat):
        raise HTTPException(400, f"input {spec.name!r} is ragged or too deep: its lists must have "
                                 "equal lengths at every level")
    if not spec.shape.is_compatible_with(leaves.shape):
        raise HTTPException(400, f"input {spec.name!r} must have the shape {spec.shape}. "
                                 f"Received: {tf.TensorShape(leaves.shape)}")
    try:
        if spec.dtype == tf.string:
            return np.vectorize(_to_bytes, otypes=[object])(leaves)
        types = {bool} if spec.dtype.is_bool else {int} if spec.dtype.is_integer else {int, float}
        for leaf in leaves.flat:
            if type(leaf) not in types:
                raise TypeError(f"must contain {spec.dtype.name} values. Received: {shown(leaf)}")
        if float in types:
            leaves = leaves.astype(np.float64)
        with np.errstate(over="raise"):
            return leaves.astype(spec.dtype.as_numpy_dtype)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise HTTPException(400, f"input {spec.name!r}: {error}") from error


def _to_bytes(leaf: Any) -> bytes:
    if isinstance(leaf, str):
        return leaf.encode("utf-8")
    if _is_bytes(leaf):
        return base64.b64decode(leaf["b64"], validate=True)
    raise TypeError(f'must contain strings, or {{"b64": "..."}} for bytes. Received: {shown(leaf)}')
