"""Settings that declare themselves: type, bounds, default and meaning stand once, at the field.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class MaskingConfig(Section, prefix="masking."):
        rate: Annotated[float, Interval(gt=0, lt=1)] = 0.15
        '''Fraction of an example's tokens selected.'''

Validation, conversion from text, flags, help texts and reference pages derive from `settings_of`.
"""

import ast
import dataclasses
import difflib
import enum
import functools
import inspect
import math
import operator
import re
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self

from annotated_types import Interval

from electra_tf.platform.errors import UserError, shown

LARGEST_COUNT = 2**31 - 1
"""Largest number of steps or examples and largest seed: they are stored in 32 bits."""
Count = Annotated[int, Interval(ge=0, le=LARGEST_COUNT)]
PositiveCount = Annotated[int, Interval(gt=0, le=LARGEST_COUNT)]
Probability = Annotated[float, Interval(ge=0, lt=1)]

_BOUNDS = (("gt", operator.gt, "greater than {:,}"), ("ge", operator.ge, "{:,} or more"),
           ("lt", operator.lt, "less than {:,}"), ("le", operator.le, "at most {:,}"))
_NUMBER = re.compile(
    r"[+-]?((0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_LONGEST_NUMBER = 40
"""Characters; an exact double can be written in 24."""
_LARGEST = 1e30
"""Above every bound; larger whole numbers have no exact form as a fraction."""
_LONGEST_NAME = 100
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
           "on": True, "off": False}
_KIND_NAMES = {int: "a whole number", float: "a finite number", bool: "true or false",
               str: "text", tuple: "a list with commas"}


def require(condition: bool, setting: str, allowed: str, received: object) -> None:
    """Raises `UserError` unless `condition` holds: "masking.rate must be ALLOWED. Received: 2"."""
    if not condition:
        raise UserError(f"{setting} must be {allowed}. Received: {shown(received)}")


def require_one_of(names: Iterable[str], setting: str, received: object) -> None:
    """Raises `UserError`, with the nearest name, unless a value is one of some names."""
    if received not in list(names):
        raise UserError(f"{setting} must be one of {', '.join(names)}. Received: "
                        f"{shown(received)}{suggestion(received, names)}")


def suggestion(received: object, known: Iterable[str]) -> str:
    """Returns the question for the known name nearest to a misspelt one; "" if none is near."""
    short = isinstance(received, str) and len(received) <= _LONGEST_NAME
    near = difflib.get_close_matches(received, known, n=1) if short else []
    return f" Did you mean {near[0]!r}?" if near else ""


class Section:
    """Base of the frozen dataclasses whose fields are settings.

    `prefix` stands before the field's name in messages: "masking." or "--". Construction checks
    every value against its bounds; rules that relate several fields are checks of the subclass.
    """

    PREFIX: ClassVar[str] = ""

    def __init_subclass__(cls, *, prefix: str | None = None, **kwargs: Any):
        super().__init_subclass__(**kwargs)
        if prefix is not None:
            cls.PREFIX = prefix

    def __post_init__(self):
        for name, setting in settings_of(type(self)).items():
            setting.check(getattr(self, name))

    def variants(self) -> Mapping[str, Self]:
        """Returns the sections that the field `name` selects from; empty without such a field."""
        return {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of one field of a `Section`."""

    name: str
    """Full name, as messages and users write it."""
    owner: type
    field: str
    kind: type
    default: Any
    bounds: Interval
    choices: tuple[str, ...]
    """Acceptable values of an enumeration; empty for other types."""

    @property
    def meaning(self) -> str:
        """Returns the field's docstring on one line, with its choices."""
        choices = ", ".join(f"`{choice}`" for choice in self.choices)
        text = _docstrings(self.owner).get(self.field, "")
        return f"{text} One of {choices}." if choices else text

    @property
    def allowed(self) -> str:
        """Returns the bounds in words; "" without bounds."""
        found = [(name, getattr(self.bounds, name), words) for name, _, words in _BOUNDS
                 if getattr(self.bounds, name) is not None]
        if len(found) == 2 and found[1][1] < 10_000:  # Larger bounds have commas within.
            (low, least, _), (high, most, _) = found
            return f"in {'(' if low == 'gt' else '['}{least}, {most}{')' if high == 'lt' else ']'}"
        return " and ".join(words.format(bound) for _, bound, words in found)

    def check(self, value: Any) -> None:
        """Raises `UserError` unless a value of the field's type is acceptable."""
        if value is None and self.default is None:
            return
        if self.choices:
            require_one_of(self.choices, self.name, value)
        for name, holds, _ in _BOUNDS:
            bound = getattr(self.bounds, name)
            require(bound is None or holds(value, bound), self.name, self.allowed, value)

    def read(self, value: Any) -> Any:
        """Returns a value of the field's type from text or from a value of YAML or JSON.

        Numbers are exact: 1e3 and 1_000 are whole numbers; 010, 1:30 and 1.5 are not.

        Raises:
            UserError: the value has another type.
        """
        if issubclass(self.kind, enum.Enum):
            require_one_of(self.choices, self.name, value)
            return self.kind(value)
        found = _READERS[self.kind](value)
        require(found is not None, self.name, _KIND_NAMES[self.kind], value)
        return found

    def shown(self, value: Any) -> str:
        """Returns a value as help texts and tables show it; "" for an empty one."""
        if self.kind is bool or isinstance(value, str):
            return str(value)
        if self.kind is tuple:
            return ",".join(value)
        return f"{value:.4g}" if self.kind is float else f"{value:,}"


def _read_bool(value: Any) -> bool | None:
    return _TRUTHS.get(str(value).lower()) if isinstance(value, str | int) else None


def _read_number(value: Any) -> int | float | None:
    """Returns a number, integers exactly; None for another value."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            return None
        return float(text) if re.search("[.eE]", text) else int(text)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _read_int(value: Any) -> int | None:
    number = _read_number(value)
    if isinstance(number, float):
        return int(number) if abs(number) < _LARGEST and number == int(number) else None
    return number


def _read_float(value: Any) -> float | None:
    number = _read_number(value)
    usable = number is not None and abs(number) < _LARGEST and not math.isnan(number)
    return float(number) if usable else None


def _read_tuple(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, str):
        return None
    return tuple(filter(None, (part.strip() for part in value.split(","))))


_READERS = {bool: _read_bool, int: _read_int, float: _read_float, tuple: _read_tuple,
            str: lambda value: value if isinstance(value, str) else None}


@functools.cache
def settings_of(kind: type[Section]) -> Mapping[str, Setting]:
    """Returns field -> declaration, without fields whose type no text can give."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = {}
    for field in dataclasses.fields(kind):
        marked = typing.get_origin(hints[field.name]) is Annotated
        hint, *marks = typing.get_args(hints[field.name]) if marked else [hints[field.name]]
        if isinstance(hint, types.UnionType):  # A number or None.
            hint = typing.get_args(hint)[0]
        choices = typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()
        hint = str if choices else typing.get_origin(hint) or hint
        if issubclass(hint, enum.Enum):
            choices = tuple(member.value for member in hint)
        elif hint not in _READERS:
            continue
        found[field.name] = Setting(
            name=kind.PREFIX + field.name, owner=kind, field=field.name, kind=hint,
            default=field.default, choices=choices,
            bounds=next((mark for mark in marks if isinstance(mark, Interval)), Interval()))
    return found


@functools.cache
def _docstrings(kind: type) -> Mapping[str, str]:
    """Returns field -> the string that follows it in the class, on one line."""
    found = {}
    if dataclasses.is_dataclass(kind.__base__):
        found = dict(_docstrings(kind.__base__))
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body
    for field, text in zip(body, body[1:], strict=False):
        if (isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)):
            found[field.target.id] = " ".join(text.value.value.split())
    return found
