"""Settings as text: their meaning, their values, and their flags on a command line."""

import ast
import contextlib
import dataclasses
import enum
import functools
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from absl import flags

from electra_tf.platform.settings import Section, Setting, require, require_one_of, settings_of

Kind = TypeVar("Kind", bound=Section)

_LARGEST = 1e30  # Above every bound.
_LONGEST = 100  # Characters of a number.
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
             "on": True, "off": False}
_NAMES = {bool: "true or false", int: "a whole number", float: "a finite number", str: "text",
          tuple: "a list with commas"}


def meaning(setting: Setting) -> str:
    """Returns the docstring of a setting's field on one line, with its choices."""
    choices = ", ".join(f"`{choice}`" for choice in setting.choices)
    text = _docstrings(setting.owner).get(setting.field, "")
    return f"{text} One of {choices}." if choices else text


def read(setting: Setting, value: Any) -> Any:
    """Returns a value of the setting's type from text or JSON, or raises `UserError`.

    Numbers are exact: 1e3 and 1_000 are whole numbers; 010, 1:30 and 1.5 are not.
    """
    kind = setting.kind
    if issubclass(kind, enum.Enum):
        require_one_of(setting.choices, setting.name, value)
        return kind(value)
    if kind is bool:
        found = _BOOLEANS.get(str(value).lower())
    elif kind is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        found = tuple(filter(None, map(str.strip, parts)))
    elif kind is str:
        found = value if isinstance(value, str) else None
    else:
        found = _number(kind, value)
    require(found is not None, setting.name, _NAMES[kind], value)
    return found


def _number(kind: type, value: Any) -> int | float | None:
    if isinstance(value, str):
        with contextlib.suppress(ValueError, SyntaxError, TypeError):
            value = ast.literal_eval(value.strip()) if len(value) <= _LONGEST else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind is int and isinstance(value, int):
        return value
    exact = abs(value) < _LARGEST and (kind is float or value == int(value))
    return kind(value) if exact else None


def written(setting: Setting, value: Any) -> str:
    """Returns a value as help texts and tables show it; "" for an empty one."""
    if setting.kind is bool or isinstance(value, str):
        return str(value)
    if setting.kind is tuple:
        return ",".join(value)
    return f"{value:.4g}" if setting.kind is float else f"{value:,}"


@functools.cache
def _docstrings(kind: type) -> Mapping[str, str]:
    """Returns field -> the string that follows it in the class, on one line."""
    found = dict(_docstrings(kind.__base__)) if dataclasses.is_dataclass(kind.__base__) else {}
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    for field, text in zip(body, body[1:], strict=False):
        if (isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)):
            found[field.target.id] = " ".join(text.value.value.split())
    return found


def define_flag(name: str, setting: Setting, default: str, value: Any = None) -> None:
    """Defines a setting's flag; the help text shows `default`, `value` applies without the flag."""
    text = meaning(setting).replace("`", "")
    if default and "Default: " not in text:
        text += f" Default: {default}."
    define = {bool: flags.DEFINE_bool, tuple: flags.DEFINE_list}.get(
        setting.kind, flags.DEFINE_string)
    define(name, value, text)


def define_flags(kind: type[Section], names: Iterable[str] | None = None) -> None:
    """Defines flags of a section's fields; numbers and lists that are not given are None."""
    known = settings_of(kind)
    for name in names or known:
        default = known[name].default
        define_flag(name, known[name], "" if default is None else written(known[name], default),
                    default if isinstance(default, str | bool) else None)


def set_default(name: str, value: str) -> None:
    """Sets a flag that was not given, and prints the value in one line."""
    if not flags.FLAGS[name].present:
        flags.FLAGS[name].value = value
        print(f"default  --{name}={value}", flush=True)


def from_flags(kind: type[Kind], names: Iterable[str] | None = None, **others: Any) -> Kind:
    """Returns a section with the values of given flags, and those of `others` for the rest."""
    known = settings_of(kind)
    given = {name: flags.FLAGS[name].value for name in names or known}
    return kind(**(others | {
        name: read(known[name], value) for name, value in given.items() if value is not None}))
