"""Settings that declare themselves: type, bounds, default and meaning stand once, at the field.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class MaskingConfig(Section, prefix="masking."):
        rate: Annotated[float, Interval(gt=0, lt=1)] = 0.15
        '''Fraction of an example's tokens selected.'''

Validation, conversion from text, flags, help texts and reference pages derive from `settings_of`.
"""

import ast
import contextlib
import dataclasses
import difflib
import enum
import functools
import inspect
import operator
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self, TypeVar

from absl import flags
from annotated_types import Interval

from electra_tf.platform.errors import UserError, shown

LARGEST_COUNT = 2**31 - 1  # Steps, examples and seeds are stored in 32 bits.
Count = Annotated[int, Interval(ge=0, le=LARGEST_COUNT)]
PositiveCount = Annotated[int, Interval(gt=0, le=LARGEST_COUNT)]
Probability = Annotated[float, Interval(ge=0, lt=1)]
Kind = TypeVar("Kind", bound="Section")

_BOUNDS = {"gt": (operator.gt, "greater than {:,}"), "ge": (operator.ge, "{:,} or more"),
           "lt": (operator.lt, "less than {:,}"), "le": (operator.le, "at most {:,}")}
_LARGEST = 1e30  # Above every bound; larger whole numbers have no exact form as a fraction.
_LONGEST = 100  # Characters of a number or name that are looked at.
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
           "on": True, "off": False}


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
    text = received[:_LONGEST] if isinstance(received, str) else ""
    near = difflib.get_close_matches(text, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class Section:
    """Base of the frozen dataclasses whose fields are settings, checked by construction."""

    PREFIX: ClassVar[str] = ""
    """Stands before a field's name in messages: "masking." or "--"."""

    def __init_subclass__(cls, *, prefix: str = "", **kwargs: Any):
        super().__init_subclass__(**kwargs)
        cls.PREFIX = prefix or cls.PREFIX

    def __post_init__(self):
        for name, setting in settings_of(type(self)).items():
            setting.check(getattr(self, name))

    def variants(self) -> Mapping[str, Self]:
        """Returns the sections that the field `name` selects from; empty without such a field."""
        return {}


@dataclasses.dataclass(frozen=True)
class Flag:
    """Mark of a setting that has a flag with its field's name in some programs."""

    group: str  # Its title in `--help`.
    programs: tuple[str, ...] = ("pretraining", "finetuning")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """The declaration of one field of a `Section`."""

    name: str  # Full, as messages and users write it.
    owner: type
    field: str
    kind: type
    default: Any
    bounds: Interval
    flag: Flag
    choices: tuple[str, ...]  # Of an enumeration; empty for other types.

    @property
    def meaning(self) -> str:
        """Returns the field's docstring on one line, with its choices."""
        choices = ", ".join(f"`{choice}`" for choice in self.choices)
        text = _docstrings(self.owner).get(self.field, "")
        return f"{text} One of {choices}." if choices else text

    @property
    def allowed(self) -> str:
        """Returns the bounds in words; "" without bounds."""
        found = self._bounds()
        if len(found) == 2 and found[1][1] < 10_000:  # Larger bounds have commas within.
            (low, least), (high, most) = found
            return f"in {'(' if low == 'gt' else '['}{least}, {most}{')' if high == 'lt' else ']'}"
        return " and ".join(_BOUNDS[name][1].format(bound) for name, bound in found)

    def _bounds(self) -> list[tuple[str, Any]]:
        bounds = {name: getattr(self.bounds, name) for name in _BOUNDS}
        return [(name, bound) for name, bound in bounds.items() if bound is not None]

    def check(self, value: Any) -> None:
        """Raises `UserError` unless a value of the field's type is acceptable."""
        if value is None and self.default is None:
            return
        if self.choices:
            require_one_of(self.choices, self.name, value)
        for name, bound in self._bounds():
            require(_BOUNDS[name][0](value, bound), self.name, self.allowed, value)

    def read(self, value: Any) -> Any:
        """Returns a value of the field's type from text or JSON; `UserError` for another type.

        Numbers are exact: 1e3 and 1_000 are whole numbers; 010, 1:30 and 1.5 are not.
        """
        if issubclass(self.kind, enum.Enum):
            require_one_of(self.choices, self.name, value)
            return self.kind(value)
        name, read = _KINDS[self.kind]
        found = read(value)
        require(found is not None, self.name, name, value)
        return found

    def shown(self, value: Any) -> str:
        """Returns a value as help texts and tables show it; "" for an empty one."""
        if self.kind is bool or isinstance(value, str):
            return str(value)
        if self.kind is tuple:
            return ",".join(value)
        return f"{value:.4g}" if self.kind is float else f"{value:,}"


def _read_number(value: Any) -> int | float | None:
    if isinstance(value, str):
        with contextlib.suppress(ValueError, SyntaxError, TypeError):
            value = ast.literal_eval(value.strip()) if len(value) <= _LONGEST else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _read_int(value: Any) -> int | None:
    number = _read_number(value)
    if isinstance(number, float):
        return int(number) if abs(number) < _LARGEST and number == int(number) else None
    return number


def _read_float(value: Any) -> float | None:
    number = _read_number(value)
    return float(number) if number is not None and abs(number) < _LARGEST else None


def _read_tuple(value: Any) -> tuple[str, ...] | None:
    parts = value.split(",") if isinstance(value, str) else value
    return tuple(filter(None, map(str.strip, parts)))


_KINDS = {bool: ("true or false", lambda value: _TRUTHS.get(str(value).lower())),
          int: ("a whole number", _read_int), float: ("a finite number", _read_float),
          str: ("text", lambda value: value if isinstance(value, str) else None),
          tuple: ("a list with commas", _read_tuple)}
"""Type -> its name, and what reads text or a JSON value, None for another type's."""


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
        elif hint not in _KINDS:
            continue
        found[field.name] = Setting(
            name=kind.PREFIX + field.name, owner=kind, field=field.name, kind=hint,
            default=field.default, choices=choices,
            bounds=next((mark for mark in marks if isinstance(mark, Interval)), Interval()),
            flag=next((mark for mark in marks if isinstance(mark, Flag)), Flag("", ())))
    return found


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
    """Defines the flag of a setting: `default` for the help text, `value` unless it is given."""
    text = setting.meaning.replace("`", "") + (f" Default: {default}." if default else "")
    define = {bool: flags.DEFINE_bool, tuple: flags.DEFINE_list}.get(
        setting.kind, flags.DEFINE_string)
    define(name, value, text)


def define_flags(kind: type[Section], names: Iterable[str] | None = None) -> None:
    """Defines flags of a section's fields; numbers and lists that are not given are None."""
    known = settings_of(kind)
    for name in names or known:
        default = known[name].default
        define_flag(name, known[name], "" if default is None else known[name].shown(default),
                    default if isinstance(default, str | bool) else None)


def set_default(name: str, value: str) -> None:
    """Sets a flag that was not given, and prints the value in one line."""
    if not flags.FLAGS[name].present:
        flags.FLAGS[name].value = value
        print(f"default  --{name}={value}", flush=True)


def from_flags(kind: type[Kind], names: Iterable[str] | None = None, **others: Any) -> Kind:
    """Returns a section with the values of given flags, and of `others` for the rest."""
    known = settings_of(kind)
    given = {name: flags.FLAGS[name].value for name in names or known}
    return kind(**(others | {
        name: known[name].read(value) for name, value in given.items() if value is not None}))
