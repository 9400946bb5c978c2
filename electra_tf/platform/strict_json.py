"""Strict JSON for files that people and other programs can change.

Duplicate keys, NaN and infinities, whole numbers past 64 bits, deep nesting, NUL characters and
halves of characters are refused. A file of a known form is read into a dataclass; a value of
another type, a missing key or an unknown one is an error that names the place.
"""

import collections
import dataclasses
import functools
import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from electra_tf.platform.bounded import cannot_read, read_bytes
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

Form = TypeVar("Form")

STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}
"""`__pydantic_config__` of a dataclass whose every key is known and there, defaults or not."""
OPEN = STRICT | {"extra": "ignore"}
"""Of one that others write, of which we read some keys."""

_LARGEST = 2**63
"""Bound of whole numbers: 64 bits."""
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair, whose other half may be missing."""

_WORDS = {
    "int_type": "must be a whole number", "int_from_float": "must be a whole number",
    "float_type": "must be a number", "finite_number": "must be a finite number",
    "string_type": "must be a string", "bool_type": "must be true or false",
    "list_type": "must be a list", "tuple_type": "must be a list",
    "dict_type": "must be an object", "mapping_type": "must be an object",
    "dataclass_type": "must be an object", "dataclass_exact_type": "must be an object",
    "missing": "is missing", "missing_argument": "is missing",
    "missing_keyword_only_argument": "is missing", "unexpected_keyword_argument": "is unknown",
    "extra_forbidden": "is unknown",
}
"""What pydantic calls an error -> what we say."""

_ADDED = "added"


def added(default: Any) -> Any:
    """Returns a field of a `STRICT` dataclass that older files don't have."""
    return dataclasses.field(default=default, metadata={_ADDED: True})


class Unreadable(ValueError):
    """What is wrong with some JSON, without the name of its file."""


def read(path: Path, form: type[Form], *, most: int, absent: str = "", fix: str = "") -> Form:
    """Returns what a file of a known form holds.

    Args:
        path: of the file.
        form: a dataclass with `STRICT` or `OPEN`, or a type made of such.
        most: bytes that the file may have.
        absent: the error if there is no such file; a plain one if empty.
        fix: for a file of our own, what to do if it is damaged.

    Raises:
        UserError: no such file, unreadable, no JSON, of another form.
    """
    return _named(path, most, absent, fix, lambda content: loads(content, form))


def read_any(path: Path, *, most: int, absent: str = "", fix: str = "") -> Any:
    """Returns what a file holds, whatever its form; arguments and errors as for `read`."""
    return _named(path, most, absent, fix, parse)


def loads(content: bytes, form: type[Form]) -> Form:
    """Returns JSON of a known form as that; `Unreadable` if it isn't."""
    from pydantic import ValidationError  # Here: commands that read no JSON needn't wait 0.2 s.

    tree = parse(content)
    try:
        found = _adapter(form).validate_json(_text(content), strict=True)
    except ValidationError as error:
        raise Unreadable(_problem(error)) from error
    if getattr(form, "__pydantic_config__", None) == STRICT:
        _refuse_gaps(found, tree, "")
    return found


def dumps(value: Form, form: type[Form]) -> bytes:
    """Returns what `loads` reads back as `value`."""
    return _adapter(form).dump_json(value)


def parse(content: bytes | str) -> Any:
    """Returns JSON as Python's values; `Unreadable` if it isn't, or isn't unambiguous."""
    text = content if isinstance(content, str) else _text(content)
    try:
        tree = json.loads(text, object_pairs_hook=_unique, parse_int=_whole, parse_float=_fraction,
                          parse_constant=_constant)
        if _NUL.search(text):
            raise Unreadable("a string holds a NUL")
        if _HALF.search(text):
            json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unreadable("a string holds half of a character") from None
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error}") from error
    return tree


def _named(path: Path, most: int, absent: str, fix: str, reader: Any) -> Any:
    try:
        return reader(read_bytes(path, most))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(absent) if absent else cannot_read(path, error) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except Unreadable as error:
        verdict = f"{path} is damaged: {error}; {fix}" if fix else f"{path}: {error}."
        raise UserError(verdict) from error


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: bad byte at offset {error.start}") from error


@functools.cache
def _adapter(form: type[Form]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = collections.Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise Unreadable(f"the key {shown(twice)} stands twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -_LARGEST <= int(digits) < _LARGEST:
        raise Unreadable(f"the number {shown(digits)[1:-1]} is past 64 bits")
    return int(digits)


def _fraction(digits: str) -> float:
    if math.isinf(float(digits)):
        raise Unreadable(f"the number {shown(digits)[1:-1]} is too large")
    return float(digits)


def _constant(name: str) -> float:
    raise Unreadable(f"{name} is no JSON")


def _refuse_gaps(found: Any, tree: Any, place: str) -> None:
    """Refuses a missing key that has a default: our files have all but those of `added`."""
    if dataclasses.is_dataclass(found):
        for field in dataclasses.fields(found):
            if field.name in tree:
                _refuse_gaps(getattr(found, field.name), tree[field.name],
                             f"{place}{_key(field.name)}: ")
            elif not field.metadata.get(_ADDED):
                raise Unreadable(f"{place}{shown(field.name)} is missing")
    elif isinstance(found, Mapping):
        for key, value in found.items():
            _refuse_gaps(value, tree[key], f"{place}{_key(str(key))}: ")
    elif isinstance(found, list | tuple):
        for index, value in enumerate(found):
            _refuse_gaps(value, tree[index], f"{place}[{index}]: ")


def _problem(error: Any) -> str:
    """Returns the first problem, with the place of the value in the file before it."""
    first, *others = error.errors(include_url=False)
    problem, location = _WORDS.get(first["type"]) or _own_words(first), first["loc"]
    received = f". Received: {shown(first['input'])}"
    if problem.startswith("is "):
        received = ""
    elif any(other["loc"][:-1] == location[:-1] and other["input"] == first["input"]
             for other in others):  # A union: the last part of the place is one of its types.
        problem, location = "is of a wrong type", location[:-1]
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{_key(part)}"
                    for part in location[:-1]).removeprefix(".")
    last = location[-1] if location else ""
    if isinstance(last, int):
        place, last = f"{place}[{last}]", ""
    subject = f"{place}: {shown(last)}" if place and last else shown(last) if last else place
    return f"{subject} {problem}{received}".strip()


def _key(name: str) -> str:
    """Returns a key as it stands in the name of a place."""
    return shown(name, 40)[1:-1]


def _own_words(first: dict[str, Any]) -> str:
    if first["type"] == "value_error":  # Raised by our dataclass, which quotes the value.
        return f"is wrong: {first['ctx']['error']}"
    return first["msg"].replace("Input should be", "must be")
