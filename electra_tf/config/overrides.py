"""Strict changes to a configuration by name, and its form as plain values.

A name is `section.field`. An unknown name or a value of the wrong type is a `UserError` that
says what was received, what is allowed, and the nearest known name.
"""

import dataclasses
import difflib
import enum
import math
import re
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from electra_tf.platform import strict_yaml
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

Config = TypeVar("Config")
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*(_[0-9]+)*)", re.ASCII)
_DECIMAL = re.compile(
    r"[+-]?((0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)
_LONGEST_NUMBER = 40
"""Characters; an exact double can be written in 24."""
_LARGEST = 1e30
"""Past all that a setting can be; whole numbers beyond have no exact form as a fraction."""
_LONGEST_NAME = 100
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False,
           "on": True, "off": False}
KIND_NAMES = {int: "whole number", float: "finite number", str: "text"}


@typing.runtime_checkable
class Variant(typing.Protocol):
    """A section with a field `name` that decides which other fields there are."""

    def variant(self, name: Any) -> "Variant":
        """Returns the section of that name; `UserError` if there is none."""
        ...

    def elsewhere(self, field: str) -> str:
        """Returns which variants have a field, in words; "" for none."""
        ...


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """Returns a copy of `config` with each `section.field` set to its value.

    Args:
        config: a frozen dataclass whose fields are section dataclasses.
        changes: full name -> value; strings are converted to the field's type. A section whose
            fields depend on its name (`Variant`) is first given the one among the changes.
    """
    config = _of_variants(config, changes)
    by_section: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        section, field = _locate(config, name)
        by_section.setdefault(section, {})[field] = _convert(config, section, field, value)
    sections = {
        section: dataclasses.replace(getattr(config, section), **fields)
        for section, fields in by_section.items()
    }
    return dataclasses.replace(config, **sections)


def _of_variants(config: Config, changes: Mapping[str, Any]) -> Config:
    sections = {
        section.name: getattr(config, section.name).variant(changes[f"{section.name}.name"])
        for section in dataclasses.fields(config)
        if isinstance(getattr(config, section.name), Variant)
        and f"{section.name}.name" in changes}
    return dataclasses.replace(config, **sections)


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """Splits `section.field=value` strings, as `--set` takes them, into a mapping."""
    changes = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set takes section.field=value. Received: {shown(assignment)}")
        changes[name.strip()] = value.strip()
    return changes


def read_yaml(path: Path) -> dict[str, str]:
    """Reads a YAML file of sections into a mapping from `section.field` to its text."""
    return {f"{section}.{field}": text
            for section, fields in strict_yaml.read_sections(path, "--config").items()
            for field, text in fields.items()}


def flatten(config: Any) -> dict[str, Any]:
    """Returns every setting as `section.field` -> plain value (enums by their value)."""
    return {
        f"{section.name}.{field.name}": _plain(getattr(getattr(config, section.name), field.name))
        for section in dataclasses.fields(config)
        for field in dataclasses.fields(getattr(config, section.name))
    }


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _locate(config: Any, name: str) -> tuple[str, str]:
    known = flatten(config)
    section, _, field = name.partition(".")
    if name not in known:
        there = getattr(config, section, None)
        if isinstance(there, Variant) and there.elsewhere(field):
            raise UserError(f"{name} isn't a setting of this run: {there.elsewhere(field)}.")
        near = [] if len(name) > _LONGEST_NAME else difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        sections = ", ".join(field.name for field in dataclasses.fields(config))
        raise UserError(f"unknown setting {shown(name)}.{hint} Sections: {sections}.")
    return section, field


def _convert(config: Any, section: str, field: str, value: Any) -> Any:
    kind = typing.get_type_hints(type(getattr(config, section)))[field]
    name = f"{section}.{field}"
    if issubclass(kind, enum.Enum):
        return _to_enum(kind, name, value)
    if kind is bool:
        return _to_bool(name, value)
    if kind is str and isinstance(value, str):
        return value
    if kind in (int, float) and not isinstance(value, bool):
        number = _to_number(value)
        if kind is int and isinstance(number, int):
            return number
        if abs(number) < _LARGEST and (kind is float or number == int(number)):
            return kind(number)
    raise UserError(f"{name} must be a {KIND_NAMES[kind]}. Received: {shown(value)}")


def _to_number(value: Any) -> int | float:
    """Reads a number, keeping integers exact; NaN for what isn't one."""
    if isinstance(value, int | float):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if len(text) > _LONGEST_NUMBER:
        return math.nan
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def _to_bool(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower() if isinstance(value, str | int) else ""
    if text not in _TRUTHS:
        raise UserError(f"{name} must be true or false. Received: {shown(value)}")
    return _TRUTHS[text]


def _to_enum(kind: type[enum.Enum], name: str, value: Any) -> enum.Enum:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise UserError(f"{name} must be one of {allowed}. Received: {shown(value)}") from None
