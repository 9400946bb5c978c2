"""Strict JSON for files that people and other programs can change.

pydantic checks a file of a known form against a dataclass: types, unknown and missing keys. All
JSON is refused that readers understand differently: duplicate keys, NaN, numbers past 64 bits, NUL
characters and unpaired surrogates.
"""

import functools
import json
import math
import re
from typing import Any, TypeVar

from electra_tf.platform.bounded import cannot_read, read_bytes
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

Form = TypeVar("Form")

STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}
"""`__pydantic_config__` of a dataclass that has a field for every key; fields without a default
must be in the file."""
OPEN = STRICT | {"extra": "ignore"}
"""`__pydantic_config__` of a dataclass with some keys of a file that other programs write."""

_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_WORDS = (("Input should be", "must be"), ("valid integer", "whole number"),
          ("a valid boolean", "true or false"), ("valid array", "list"), ("valid ", ""),
          ("Field required", "is missing"),
          ("Extra inputs are not permitted", "is unknown"),
          ("Unexpected keyword argument", "is unknown"), ("Value error,", "is wrong:"))
"""Parts of pydantic's messages, and what this program writes instead."""


class Unreadable(ValueError):
    """What is wrong with some JSON, without the name of its file."""


def read(path: Path, form: type[Form], *, most: int, absent: str = "", fix: str = "") -> Form:
    """Returns the content of a file of a known form.

    Args:
        path: the file.
        form: a dataclass with `STRICT` or `OPEN`, or a type made of such; Any for any JSON.
        most: largest size in bytes.
        absent: the error if there is no such file; a general one if empty.
        fix: for a file that this program wrote, what to do if it is damaged.

    Raises:
        UserError: no such file, unreadable, not JSON, or of another form.
    """
    try:
        return loads(read_bytes(path, most), form)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(absent) if absent else cannot_read(path, error) from error
    except OSError as error:
        raise cannot_read(path, error) from error
    except Unreadable as error:
        verdict = f"{path} is damaged: {error}; {fix}" if fix else f"{path}: {error}."
        raise UserError(verdict) from error


def loads(content: bytes, form: type[Form]) -> Form:
    """Returns JSON of a known form; raises `Unreadable` for another form."""
    from pydantic import ValidationError  # 0.2 s that commands without JSON do not wait.

    parse(content)
    try:
        return _adapter(form).validate_json(content.removeprefix(b"\xef\xbb\xbf"), strict=True)
    except ValidationError as error:
        raise Unreadable(_problem(error.errors(include_url=False))) from error


def dumps(value: Form, form: type[Form]) -> bytes:
    """Returns JSON that `loads` reads as `value`."""
    return _adapter(form).dump_json(value)


def parse(content: bytes | str) -> Any:
    """Returns JSON as Python values; raises `Unreadable` if it is damaged or ambiguous."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        tree = json.loads(text, object_pairs_hook=_unique, parse_int=_number, parse_float=_number,
                          parse_constant=_number)
        if _NUL.search(text):
            raise Unreadable("a string holds a NUL")
        if "\\u" in text:  # An escape can be one half of a surrogate pair.
            json.dumps(tree, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unreadable("a string holds half of a character") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: bad byte at offset {error.start}") from error
    except RecursionError:
        raise Unreadable("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error}") from error
    return tree


@functools.cache
def _adapter(form: type[Form]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {}
    for key, value in pairs:
        if key in found:
            raise Unreadable(f"the key {shown(key)} stands twice in one object")
        found[key] = value
    return found


def _number(text: str) -> int | float:
    number = float(text)
    if not math.isfinite(number):
        raise Unreadable(f"{shown(text)[1:-1]} is no JSON number of 64 bits")
    if not text.lstrip("-").isdigit():
        return number
    if not -2**63 <= int(text) < 2**63:
        raise Unreadable(f"the number {shown(text)[1:-1]} is past 64 bits")
    return int(text)


def _problem(errors: list[dict[str, Any]]) -> str:
    """Returns the first of pydantic's errors, with the place of the value in the file before it."""
    first, *others = errors
    *outer, last = first["loc"] or ("",)
    problem = first["msg"]
    for theirs, ours in _WORDS:
        problem = problem.replace(theirs, ours)
    if any(other["loc"][:-1] == tuple(outer) and other["input"] == first["input"]
           for other in others):  # A union: the last part of the place is one of its types.
        *outer, last = outer or ("",)
        problem = "must be of another type"
    if problem.startswith("must"):
        problem += f". Received: {shown(first['input'])}"
    if isinstance(last, int):
        outer, last = [*outer, last], ""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{shown(part, 40)[1:-1]}"
                    for part in outer).removeprefix(".")
    return " ".join(filter(None, [": ".join(filter(None, [place, last and shown(last)])), problem]))
