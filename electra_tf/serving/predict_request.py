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
from collections.abc import Mapping
from typing import Any

from electra_tf.serving import json_tensors
from electra_tf.serving.errors import RequestError
from electra_tf.serving.saved_models import DEFAULT_SIGNATURE, Arrays, ServedModel, Signature


class Format(enum.StrEnum):
    """How tensors are laid out, named by the key that a request has."""

    ROW = "instances"
    COLUMN = "inputs"


@dataclasses.dataclass(frozen=True, kw_only=True)
class PredictRequest:
    """A request whose inputs fit its signature."""

    signature: Signature
    format: Format
    inputs: Arrays


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
    formats = [form for form in Format if form.value in content]
    if len(formats) != 1:
        raise RequestError("the request needs exactly one of 'instances' (row format) and "
                           f"'inputs' (column format). Received: {len(formats)} of them")
    values = content[formats[0].value]
    columns = _from_rows if formats[0] is Format.ROW else _from_columns
    inputs = {name: json_tensors.to_array(value, signature.inputs[name])
              for name, value in columns(values, signature).items()}
    rows = max((len(array) for array in inputs.values() if array.ndim), default=0)
    if rows > max_rows:
        raise RequestError(f"at most {max_rows} rows fit into a request (--max_request_rows). "
                           f"Received: {rows}")
    return PredictRequest(signature=signature, format=formats[0], inputs=inputs)


def render(outputs: Arrays, form: Format) -> dict[str, Any]:
    """Returns the answer's JSON in the request's format.

    Raises:
        RequestError: the outputs have no rows of their own, but the row format was asked for.
    """
    columns = {name: json_tensors.to_json(array, name) for name, array in sorted(outputs.items())}
    if form is Format.COLUMN:
        return {"outputs": _without_name(columns)}
    sizes = {array.shape[:1] for array in outputs.values()}
    if len(sizes) > 1 or () in sizes:
        raise RequestError("the outputs of this signature don't share a first dimension; use the "
                           "column format ('inputs').")
    rows = [dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)]
    return {"predictions": [_without_name(row) for row in rows]}


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except RecursionError as error:
        raise RequestError("the JSON is nested too deeply") from error
    except ValueError as error:
        raise RequestError(f"the body isn't JSON: {error}") from error
    if not isinstance(content, dict):
        raise RequestError('the body must be a JSON object, like {"instances": [...]}')
    return content


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
