"""Strict JSON for files that people and other programs can change.

pydantic checks the form of a file against a dataclass. JSON that parsers interpret differently is
refused: duplicate keys, NaN, numbers past 64 bits and unpaired surrogates.
"""

import codecs
import dataclasses
import functools
import json
import math
import typing
from typing import Any, TypeVar

from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import MIB, Path, read_bytes

Form = TypeVar("Form")

STRICT = {"strict": True, "extra": "forbid", "allow_inf_nan": False}
"""`__pydantic_config__` of a dataclass that isn't an `Object`."""

_WORDS = (("Input should be", "must be"), ("valid integer", "whole number"),
          ("a valid boolean", "true or false"), ("valid array", "list"), ("valid ", ""),
          ("Field required", "is missing"), ("Extra inputs are not permitted", "is unknown"),
          ("Unexpected keyword argument", "is unknown"), ("Value error,", "is wrong:"))
"""Parts of pydantic's messages, and what this program writes instead."""


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Object:
    """Base of the forms of JSON objects: frozen dataclasses with a field for every key."""

    __pydantic_config__ = STRICT

    def __init_subclass__(cls):
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)


class OpenObject(Object):
    """Base of the forms of JSON objects that may have other keys, which are ignored."""

    __pydantic_config__ = STRICT | {"extra": "ignore"}


class Unreadable(ValueError):
    """A problem with JSON, without the name of its file."""


def read(path: Path, form: type[Form], *, max_bytes: int = MIB, absent: str = "",
         fix: str = "") -> Form:
    """Returns the content of a file of at most `max_bytes`, or raises `UserError`.

    `form` is an `Object`, a type made of such, or Any. `absent` is the error for a missing file;
    `fix` says what to do if a file of this program is damaged.
    """
    try:
        return loads(read_bytes(path, max_bytes, absent), form)
    except Unreadable as error:
        problem = f"{path} is damaged: {error}; {fix}" if fix else f"{path}: {error}."
        raise UserError(problem) from error


def loads(content: bytes, form: type[Form]) -> Form:
    """Returns JSON of a known form; raises `Unreadable` for another form."""
    from pydantic import ValidationError  # 0.2 s that commands without JSON do not wait.

    # pydantic accepts ambiguous JSON, which `parse` refuses first.
    parse(content)
    try:
        return _adapter(form).validate_json(content.removeprefix(codecs.BOM_UTF8), strict=True)
    except ValidationError as error:
        raise Unreadable(_problem(error.errors(include_url=False)[0])) from error


def dumps(value: Form, form: type[Form]) -> bytes:
    """Returns JSON that `loads` reads as `value`."""
    return _adapter(form).dump_json(value)


def parse(content: bytes | str) -> Any:
    """Returns JSON as Python values; raises `Unreadable` if it is damaged or ambiguous."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        tree = json.loads(text, object_pairs_hook=_unique, parse_int=_number, parse_float=_number,
                          parse_constant=_number)
        if "\\u" in text:  # An escape can be one half of a surrogate pair.
            json.dumps(tree, ensure_ascii=False).encode()
    except Unreadable:
        raise
    except UnicodeEncodeError as error:
        before = shown(error.object[max(0, error.start - 30):error.start])
        raise Unreadable(f"half of a character follows {before}; correct or remove it") from error
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"not JSON in UTF-8: {error}") from error
    return tree


@functools.cache
def _adapter(form: type[Form]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(form)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Python's parser would keep the last of several equal keys.
    entries = {}
    for key, value in pairs:
        if key in entries:
            raise Unreadable(f"the key {shown(key)} occurs twice in one object")
        entries[key] = value
    return entries


def _number(text: str) -> int | float:
    # Larger integers and floats would be rounded or infinite in other programs.
    is_integer, number = text.lstrip("-").isdigit(), float(text)
    if not abs(number) < (2**63 if is_integer else math.inf):
        raise Unreadable(f"{shown(text)[1:-1]} is not a JSON number of 64 bits")
    return int(text) if is_integer else number


def _problem(error: dict[str, Any]) -> str:
    """Returns one of pydantic's errors in words, after the position of the value in the file."""
    # In our words, with the position: outer keys as a path, the last one as the subject.
    *outer, last = error["loc"] or ("",)
    problem = error["msg"]
    for words, replacement in _WORDS:
        problem = problem.replace(words, replacement)
    if problem.startswith("must"):
        problem += f". Received: {shown(error['input'])}"
    if isinstance(last, int):
        outer, last = [*outer, last], ""
    position = "".join(f"[{part}]" if isinstance(part, int) else f".{shown(part, 40)[1:-1]}"
                       for part in outer).removeprefix(".")
    return " ".join(filter(None, [position and f"{position}:", last and shown(last), problem]))
