"""Answers predict requests in TensorFlow Serving's two formats of JSON.

    {"instances": [{"text": "a", "pair": "b"}]}    {"predictions": [{"label": ..., ...}]}   rows
    {"inputs": {"text": ["a"], "pair": ["b"]}}     {"outputs": {"label": [...], ...}}       columns

Bytes are {"b64": "..."}. Numbers may be NaN, Infinity or -Infinity.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from starlette.exceptions import HTTPException

from electra_tf.apps.serving.models import DEFAULT_SIGNATURE, ServedModel
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.core.errors import shown


def answer(body: bytes, model: ServedModel, config: ServerConfig) -> bytes:
    """Returns a model's answer to a request, or raises HTTPException."""
    # The signature and the inputs.
    try:
        content = json.loads(body, object_hook=_decode_bytes)
    except (ValueError, RecursionError) as error:  # Also: invalid UTF-8, too long an integer.
        raise HTTPException(400, f"the body can't be read as JSON: {error}") from error
    if not isinstance(content, dict) or ("instances" in content) == ("inputs" in content):
        raise HTTPException(400, 'the body must be an object with one of "instances" (row format) '
                                 'and "inputs" (column format)')
    name, in_rows = content.get("signature_name") or DEFAULT_SIGNATURE, "instances" in content
    if not isinstance(name, str) or name not in model.signatures:
        raise HTTPException(400, f"unknown signature_name {shown(name)}; this model has "
                                 f"{', '.join(model.signatures)}")
    # Rows become columns: an array of each input, with a limit on their length.
    specs, function = model.signatures[name]
    columns = _columns(content["instances" if in_rows else "inputs"], in_rows, specs)
    rows = max((len(value) for value in columns.values() if isinstance(value, list)), default=0)
    if rows > config.max_request_rows:
        raise HTTPException(400, f"a request may have at most {config.max_request_rows} rows "
                                 f"(--max_request_rows). Received: {rows}")
    # One array for each input, then the model; a value that an op refuses is the client's error.
    inputs = [_array(columns[name], spec, config) for name, spec in specs.items()]
    try:
        outputs = function(*inputs)
    except tf.errors.OpError as error:
        status, problem = ((400, "refused the inputs") if isinstance(
            error, tf.errors.InvalidArgumentError) else (500, "failed"))
        reason = error.message.removeprefix("Graph execution error:").partition("[[")[0].strip()
        raise HTTPException(status, f"the model {problem}: {reason}") from error
    # The outputs, in the format of the request.
    lists = {name: _lists(name, value) for name, value in sorted(outputs.items())}
    is_single = len(lists) == 1  # Its name is left out.
    if not in_rows:
        result = {"outputs": next(iter(lists.values())) if is_single else lists}
    elif len(sizes := {np.shape(value)[:1] for value in outputs.values()}) > 1 or () in sizes:
        raise HTTPException(400, 'the outputs of this signature have no common first dimension; '
                                 'use the column format ("inputs")')
    else:
        result = {"predictions": [row[0] if is_single else dict(zip(lists, row, strict=True))
                                  for row in zip(*lists.values(), strict=True)]}
    return json.dumps(result, ensure_ascii=False, default=_text).encode("utf-8") + b"\n"


def _decode_bytes(value: dict[str, Any]) -> Any:
    is_bytes = value.keys() == {"b64"} and isinstance(value["b64"], str)
    return base64.b64decode(value["b64"], validate=True) if is_bytes else value


def _columns(values: Any, in_rows: bool, specs: Mapping[str, tf.TensorSpec]) -> dict[str, Any]:
    """Returns input -> value; a single input may lack its name."""
    if in_rows and not (isinstance(values, list) and values):
        raise HTTPException(400, "'instances' must be a list of at least one row")
    objects = values if in_rows else [values]
    if len(specs) == 1 and not any(isinstance(value, dict) for value in objects):
        return dict.fromkeys(specs, values)
    for number, value in enumerate(objects):
        if not isinstance(value, dict) or value.keys() != specs.keys():
            subject = f"row {number} of 'instances'" if in_rows else "'inputs'"
            raise HTTPException(400, f"{subject} must be an object with {', '.join(specs)}. "
                                     f"Received: {shown(value)}")
    return {name: [row[name] for row in values] for name in specs} if in_rows else values


def _array(value: Any, spec: tf.TensorSpec, config: ServerConfig) -> np.ndarray:
    """Returns nested lists as an array of an input's type and shape."""
    leaves, dtype = np.array(value, object), spec.dtype  # Ragged lists stay lists.
    types = ({str, bytes} if dtype == tf.string else {bool} if dtype.is_bool else
             {int} if dtype.is_integer else {int, float})
    described = 'strings, or {"b64": "..."} for bytes' if str in types else f"{dtype.name} values"
    try:
        if not spec.shape.is_compatible_with(leaves.shape):
            raise ValueError(f"must have the shape {spec.shape}, with lists of equal lengths. "
                             f"Received: {leaves.shape}")
        for leaf in leaves.flat:
            if type(leaf) not in types:
                raise ValueError(f"must contain {described}. Received: {shown(leaf)}")
        if str not in types:
            with np.errstate(over="raise"):
                return (leaves.astype(np.float64) if float in types else leaves).astype(
                    dtype.as_numpy_dtype)
        texts = np.vectorize(lambda leaf: leaf.encode() if isinstance(leaf, str) else leaf,
                             otypes=[object])(leaves)
        if (longest := max(map(len, texts.flat), default=0)) > config.max_text_mib * 2**20:
            raise ValueError(f"may have texts of at most {config.max_text_mib:g} MiB "
                             f"(--max_text_mib). Received: {longest:,} bytes")
        return texts
    except (ValueError, RuntimeError, ArithmeticError) as error:
        raise HTTPException(400, f"input {spec.name!r}: {error}") from error


def _lists(name: str, value: Any) -> Any:
    """Returns an output as nested lists; bytes become base64 if its name ends in "_bytes"."""
    array = np.asarray(value, object if isinstance(value, bytes) else None)
    if array.dtype == object and name.endswith("_bytes"):
        array = np.vectorize(lambda item: {"b64": base64.b64encode(item).decode("ascii")},
                             otypes=[object])(array)
    elif array.dtype in (np.float16, tf.bfloat16.as_numpy_dtype, np.float32):
        # The shortest decimal that reads back as the same number, not 0.10000000149011612.
        array = array.astype(np.float32).astype(str).astype(np.float64)
    return array.tolist()


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        raise HTTPException(501, f"JSON cannot represent outputs of type {type(value).__name__}")
    return value.decode("utf-8", "replace")
