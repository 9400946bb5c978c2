"""The body of a predict request and of its answer, in TensorFlow Serving's two formats.

Row format, one value or object per row:

    {"instances": ["a text", "another"]}               {"predictions": [0.1, 0.9]}
    {"instances": [{"text": "a", "pair": "b"}]}        {"predictions": [{"label": ..., ...}]}

Column format, one list per tensor:

    {"inputs": {"text": ["a"], "pair": ["b"]}}         {"outputs": {"label": [...], ...}}
"""

import dataclasses
import enum
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.apps.serving import json_tensors
from electra_tf.apps.serving.errors import RequestError
from electra_tf.apps.serving.saved_models import DEFAULT_SIGNATURE, Arrays, ServedModel, Signature


class RequestFormat(enum.StrEnum):
    """How tensors are laid out, named by the key that a request has."""

    ROW = "instances"
    COLUMN = "inputs"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """A request whose inputs fit its signature."""

    signature: Signature
    format: RequestFormat
    inputs: Arrays
    rows: int


def parse(body: bytes, model: ServedModel, *, max_rows: int) -> PredictRequest:
    """Reads a request's body.

    Args:
        body: JSON in UTF-8.
        model: whose signatures it may name.
        max_rows: at most so many rows.

    Raises:
        RequestError: it isn't JSON, or isn't what the signature takes.
    """
    content = _json_object(body)
    signature = _signature(content, model)
    formats = [form for form in RequestFormat if form.value in content]
    if len(formats) != 1:
        raise RequestError("the request needs exactly one of 'instances' (row format) and "
                           f"'inputs' (column format). Received: {len(formats)} of them")
    values = content[formats[0].value]
    _check_rows(len(values) if formats[0] is RequestFormat.ROW and isinstance(values, list) else 0,
                max_rows)
    columns = _from_rows if formats[0] is RequestFormat.ROW else _from_columns
    inputs = {name: json_tensors.to_array(value, signature.inputs[name])
              for name, value in columns(values, signature).items()}
    rows = max((len(array) for array in inputs.values() if array.ndim), default=0)
    _check_rows(rows, max_rows)
    return PredictRequest(signature=signature, format=formats[0], inputs=inputs, rows=rows)


def render(pieces: Sequence[Arrays], form: RequestFormat) -> dict[str, Any]:
    """Returns the answer's JSON in the request's format.

    Args:
        pieces: outputs; several pieces hold some of the rows each. For the column format they
            agree in all dimensions but the first.
        form: the format.

    Raises:
        RequestError: the outputs have no rows of their own, but the row format was asked for.
    """
    if form is RequestFormat.ROW:
        return {"predictions": [row for outputs in pieces for row in _rendered_rows(outputs)]}
    whole = pieces[0] if len(pieces) == 1 else {
        name: np.concatenate([outputs[name] for outputs in pieces]) for name in pieces[0]}
    return {"outputs": _without_name(_rendered(whole))}


def _check_rows(rows: int, most: int) -> None:
    if rows > most:
        raise RequestError(f"at most {most} rows fit into a request (--max_request_rows). "
                           f"Received: {rows}")


def _rendered(outputs: Arrays) -> dict[str, Any]:
    return {name: json_tensors.to_json(array, name) for name, array in sorted(outputs.items())}


def _rendered_rows(outputs: Arrays) -> list[Any]:
    columns = _rendered(outputs)
    sizes = {array.shape[:1] for array in outputs.values()}
    if len(sizes) > 1 or () in sizes:
        raise RequestError("the outputs of this signature don't share a first dimension; use the "
                           "column format ('inputs').")
    return [_without_name(dict(zip(columns, row, strict=True)))
            for row in zip(*columns.values(), strict=True)]


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body, object_pairs_hook=_object, parse_float=_float)
    except RecursionError as error:
        raise RequestError("the JSON is nested too deeply") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"the body isn't JSON: {error}") from error
    except RequestError:
        raise
    except ValueError as error:  # Python makes no int of 5,000 digits.
        raise RequestError("the body isn't JSON that can be read: a number has too many "
                           "digits") from error
    if not isinstance(content, dict):
        raise RequestError('the body must be a JSON object, like {"instances": [...]}')
    return content


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise RequestError(f"the name {twice[:100]!r} stands twice in one JSON object")
    return found


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):  # Infinity itself is another token.
        raise RequestError(f"the number {text[:30]} is too large")
    return number


def _signature(content: Mapping[str, Any], model: ServedModel) -> Signature:
    name = content.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise RequestError("'signature_name' must be a string")
    if (signature := model.signatures.get(name or DEFAULT_SIGNATURE)) is None:
        raise RequestError(f"unknown signature {name[:100]!r}; this model has "
                           f"{', '.join(model.signatures)}")
    return signature


def _from_rows(values: Any, signature: Signature) -> dict[str, list]:
    if not isinstance(values, list) or not values:
        raise RequestError("'instances' must be a list of at least one row")
    names = signature.inputs.keys()
    if len(names) == 1 and not _is_named(values[0]):
        if any(_is_named(row) for row in values):
            raise RequestError("'instances' mixes values and objects")
        return {name: values for name in names}
    for number, row in enumerate(values):
        if not _is_named(row):
            raise RequestError(f"row {number} of 'instances' must be an object with "
                               f"{', '.join(names)}")
        _check_names(row, signature, f"row {number} of 'instances'")
    return {name: [row[name] for row in values] for name in names}


def _from_columns(values: Any, signature: Signature) -> dict[str, Any]:
    names = signature.inputs.keys()
    if _is_named(values):
        _check_names(values, signature, "'inputs'")
        return values
    if len(names) != 1:
        raise RequestError(f"'inputs' must be an object with {', '.join(names)}")
    return {name: values for name in names}


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not json_tensors.is_bytes(value)


def _check_names(row: Mapping[str, Any], signature: Signature, where: str) -> None:
    if missing := signature.inputs.keys() - row.keys():
        raise RequestError(f"{where} lacks {', '.join(sorted(missing))}")
    if unknown := row.keys() - signature.inputs.keys():
        raise RequestError(f"{where} has the unknown input {min(unknown)[:100]!r}; signature "
                           f"{signature.name!r} takes {', '.join(signature.inputs)}")


def _without_name(values: dict[str, Any]) -> Any:
    """A single tensor goes without its name."""
    return next(iter(values.values())) if len(values) == 1 else values
