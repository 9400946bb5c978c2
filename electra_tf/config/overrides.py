"""Strict changes to a configuration by name, and its form as plain values.

A name is `section.field`. An unknown name or a value of the wrong type is a `UserError` that
says what was received, what is allowed, and the nearest known name.
"""

import dataclasses
import difflib
import enum
import math
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import yaml

from electra_tf.command_line import UserError
from electra_tf.storage import Path

Config = TypeVar("Config")
KIND_NAMES = {int: "whole number", float: "finite number", str: "text"}


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """Returns a copy of `config` with each `section.field` set to its value.

    Args:
        config: a frozen dataclass whose fields are section dataclasses.
        changes: full name -> value; strings are converted to the field's type.
    """
    by_section: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        section, field = _locate(config, name)
        by_section.setdefault(section, {})[field] = _convert(config, section, field, value)
    sections = {
        section: dataclasses.replace(getattr(config, section), **fields)
        for section, fields in by_section.items()
    }
    return dataclasses.replace(config, **sections)


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """Splits `section.field=value` strings, as `--set` takes them, into a mapping."""
    changes = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set takes section.field=value. Received: {assignment!r}")
        changes[name.strip()] = value.strip()
    return changes


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML file of sections into a mapping from `section.field` to value."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise UserError(f"--config={path} can't be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"--config={path} is not valid YAML: {reason}") from error
    if not isinstance(tree, dict):
        raise UserError(f"--config={path} must hold sections, each with fields. Received: "
                        f"{type(tree).__name__}")
    changes = {}
    for section, fields in tree.items():
        if not isinstance(fields, dict):
            raise UserError(f"--config={path}: section {section!r} must hold fields. "
                            f"Received: {fields!r}")
        changes |= {f"{section}.{field}": value for field, value in fields.items()}
    return changes


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
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        sections = ", ".join(field.name for field in dataclasses.fields(config))
        raise UserError(f"unknown setting {name!r}.{hint} Sections: {sections}.")
    section, _, field = name.partition(".")
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
        if math.isfinite(number) and (kind is float or number == int(number)):
            return kind(number)
    raise UserError(f"{name} must be a {KIND_NAMES[kind]}. Received: {value!r}")


def _to_number(value: Any) -> int | float:
    """Reads a number, keeping integers exact; NaN for what isn't one."""
    for kind in (int, float):
        try:
            return kind(str(value).replace("_", ""))
        except ValueError:
            continue
    return math.nan


def _to_bool(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
    if str(value).lower() not in words:
        raise UserError(f"{name} must be true or false. Received: {value!r}")
    return words[str(value).lower()]


def _to_enum(kind: type[enum.Enum], name: str, value: Any) -> enum.Enum:
    # YAML reads a bare `on` or `off` as a truth value.
    text = {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value
    try:
        return kind(text)
    except ValueError:
        allowed = ", ".join(member.value for member in kind)
        raise UserError(f"{name} must be one of {allowed}. Received: {value!r}") from None
