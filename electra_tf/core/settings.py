"""Declaration of settings: a field of a class has the type, bounds, default and meaning.

    class MaskingConfig(Section, prefix="masking."):
        rate: Annotated[float, Interval(gt=0, lt=1)] = setting(0.15, "Fraction of tokens selected.")

Checks and conversion from text derive from the declaration; `setting_flags` derives flags.
"""

import ast
import contextlib
import dataclasses
import difflib
import enum
import functools
import math
import operator
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Interval

from electra_tf.core.errors import UserError, shown

LARGEST_COUNT = 2**31 - 1  # Steps, examples and seeds are stored in 32 bits.
Count = Annotated[int, Interval(ge=0, le=LARGEST_COUNT)]
PositiveCount = Annotated[int, Interval(gt=0, le=LARGEST_COUNT)]
Probability = Annotated[float, Interval(ge=0, lt=1)]

_BOUNDS = {"gt": (operator.gt, "greater than {:,}"), "ge": (operator.ge, "{:,} or more"),
           "lt": (operator.lt, "less than {:,}"), "le": (operator.le, "at most {:,}")}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
             "on": True, "off": False}


def setting(default: Any = dataclasses.MISSING, help: str = "") -> Any:
    """Returns the field of a `Section` with a default and a meaning, a text of some lines."""
    return dataclasses.field(default=default, metadata={"help": " ".join(help.split())})


def require(condition: bool, setting: str, allowed: str, received: object) -> None:
    """Raises `UserError` unless `condition` holds: "masking.rate must be ALLOWED. Received: 2"."""
    if not condition:
        raise UserError(f"{setting} must be {allowed}. Received: {shown(received)}")


def require_one_of(names: Iterable[str], setting: str, received: object) -> None:
    """Raises `UserError`, with the nearest name, unless a value is one of some names."""
    if received not in list(names):
        raise UserError(f"{setting} must be one of {', '.join(names)}. Received: "
                        f"{shown(received)}.{suggestion(received, names)}")


def suggestion(received: object, known: Iterable[str]) -> str:
    """Returns a question with the known name nearest to a misspelt one; "" if none is near."""
    near = difflib.get_close_matches(str(received)[:100], known, n=1)
    return f" Did you mean {str(near[0])!r}?" if near else ""


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Section:
    """Base of the classes whose fields are settings: frozen dataclasses that check their values."""

    PREFIX: ClassVar[str] = ""
    """Text before a field's name in messages: "masking." or "--"."""

    def __init_subclass__(cls, *, prefix: str = ""):
        cls.PREFIX = prefix or cls.PREFIX
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        for name, setting in settings_of(type(self)).items():
            setting.check(getattr(self, name))


@dataclasses.dataclass(frozen=True)
class Flag:
    """Mark of a setting that has a flag with its field's name in some programs."""

    group: str  # Its title in `--help`.
    programs: tuple[str, ...] = ("pretraining", "finetuning")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of one field of a `Section`."""

    name: str  # With the prefix, as in messages.
    field: str
    kind: type
    default: Any
    help: str  # On one line.
    bounds: Mapping[str, Any]  # "ge" and the like -> number.
    flag: Flag
    choices: tuple[str, ...]  # Of a value, or of a list's items; empty if any are allowed.

    @property
    def meaning(self) -> str:
        """The help text, with the choices that it doesn't name."""
        if all(re.search(rf"\b{choice}\b", self.help) for choice in self.choices):
            return self.help
        return f"{self.help} One of {', '.join(f'`{choice}`' for choice in self.choices)}."

    @property
    def allowed(self) -> str:
        """The bounds in words; "" without bounds."""
        # Two bounds are an interval: ( and ) exclude, [ and ] include.
        bounds = list(self.bounds.items())
        if len(bounds) == 2 and bounds[1][1] < 10_000:  # Larger bounds have commas within.
            (low, minimum), (high, maximum) = bounds
            return (f"in {'(' if low == 'gt' else '['}{minimum}, {maximum}"
                    f"{')' if high == 'lt' else ']'}")
        return " and ".join(_BOUNDS[name][1].format(bound) for name, bound in bounds)

    def check(self, value: Any) -> None:
        """Raises `UserError` unless a value of the field's type is acceptable."""
        # A flag that was not given has no value.
        if value is None and self.default is None:
            return
        for choice in (value if self.kind is tuple else [value]) if self.choices else ():
            require_one_of(self.choices, self.name, choice)
        for name, bound in self.bounds.items():
            require(_BOUNDS[name][0](value, bound), self.name, self.allowed, value)

    def read_several(self, text: str) -> tuple[Any, ...] | None:
        """Returns the acceptable values of a list with commas, all different; None for others."""
        if not isinstance(text, str) or "," not in text or self.kind is tuple or (
                self.kind is str and not self.choices):
            return None
        # Each value as if it were given alone.
        values = tuple(map(self.read, map(str.strip, text.split(","))))
        require(len(set(values)) == len(values), self.name, "different values", text)
        return values

    def read(self, value: Any) -> Any:
        """Returns an acceptable value of the field's type from text or JSON, or raises `UserError`.

        Numbers are read as Python writes them, without rounding: 1e3 and 1_000 are whole numbers;
        010, 1:30 and 1.5 are not.
        """
        if issubclass(self.kind, enum.Enum):
            require_one_of(self.choices, self.name, value)
            return self.kind(value)
        words, convert = _TYPES[self.kind]
        require((converted := convert(value)) is not None, self.name, words, value)
        self.check(converted)
        return converted


def _read_list(value: Any) -> tuple[str, ...] | None:
    parts = value.split(",") if isinstance(value, str) else value
    is_list = isinstance(parts, list | tuple) and all(isinstance(part, str) for part in parts)
    return tuple(filter(None, map(str.strip, parts))) if is_list else None


def _read_number(kind: type, value: Any) -> int | float | None:
    with contextlib.suppress(ValueError, SyntaxError, TypeError, OverflowError):
        if isinstance(value, str) and len(value) <= 100 and "#" not in value:
            value = ast.literal_eval(value.strip())
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Python converts 1.5 to 1 and "nan" to a float, which are refused.
            number = kind(value)
            if abs(number) < math.inf and (kind is float or number == value):
                return number
    return None


_TYPES: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    bool: ("true or false", lambda value: _BOOLEANS.get(str(value).lower())),
    int: ("a whole number", functools.partial(_read_number, int)),
    float: ("a finite number", functools.partial(_read_number, float)),
    str: ("text", lambda value: value if isinstance(value, str) else None),
    tuple: ("a list with commas", _read_list)}
"""Type of a field -> its name in messages, and a converter that returns None for other values."""


@functools.cache
def settings_of(section: type[Section]) -> Mapping[str, Setting]:
    """Returns field -> declaration, without fields of types that text cannot express."""
    hints = typing.get_type_hints(section, include_extras=True)
    settings = {}
    for field in dataclasses.fields(section):
        # The type of a value, or of a list's items: Annotated[TYPE | None, mark, ...].
        marked = typing.get_origin(hints[field.name]) is Annotated
        hint, *marks = typing.get_args(hints[field.name]) if marked else [hints[field.name]]
        if isinstance(hint, types.UnionType):
            hint = typing.get_args(hint)[0]
        # The class, that of a list's items, and the values that a Literal or an enumeration allows.
        kind = typing.get_origin(hint) or hint
        item = typing.get_args(hint)[0] if kind is tuple else hint
        choices = typing.get_args(item) if typing.get_origin(item) is typing.Literal else ()
        kind = str if kind is typing.Literal else kind
        if issubclass(kind, enum.Enum):
            choices = tuple(member.value for member in kind)
        elif kind not in _TYPES:
            continue

        # Bounds and the flag are marks.
        interval = next((mark for mark in marks if isinstance(mark, Interval)), Interval())
        settings[field.name] = Setting(
            name=section.PREFIX + field.name, field=field.name, kind=kind, default=field.default,
            help=field.metadata.get("help", ""), choices=choices,
            bounds={name: bound for name in _BOUNDS
                    if (bound := getattr(interval, name)) is not None},
            flag=next((mark for mark in marks if isinstance(mark, Flag)), Flag("", ())))
    return settings
