"""Strict changes to a configuration by name, and its form as plain values.

A name is `section.field`. An unknown name or a value of the wrong type is a `UserError` that
names the value received, what is allowed and the nearest known name.
"""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any, TypeVar

from electra_tf.platform import strict_yaml
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import (
    Section,
    Setting,
    require_one_of,
    settings_of,
    suggestion,
)
from electra_tf.platform.storage import Path

Config = TypeVar("Config")


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """Returns a copy of `config` with each `section.field` set to its value.

    Args:
        config: a frozen dataclass whose fields are `Section`s.
        changes: full name -> value; strings are converted to the field's type. A section with
            variants is first replaced by the one that `section.name` selects.
    """
    config = _with_variants(config, changes)
    by_section: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        section, _, field = name.partition(".")
        read = setting_of(config, name).read(value)
        by_section.setdefault(section, {})[field] = read
    return dataclasses.replace(config, **{
        section: dataclasses.replace(getattr(config, section), **fields)
        for section, fields in by_section.items()})


def _with_variants(config: Config, changes: Mapping[str, Any]) -> Config:
    chosen = {}
    for section in dataclasses.fields(config):
        setting, here = f"{section.name}.name", getattr(config, section.name)
        if setting in changes and (variants := here.variants()):
            require_one_of(variants, setting, changes[setting])
            if changes[setting] != here.name:
                chosen[section.name] = variants[changes[setting]]
    return dataclasses.replace(config, **chosen)


def setting_of(config: Any, name: str) -> Setting:
    """Returns the declaration of `section.field`; `UserError` with the nearest name if unknown."""
    section, _, field = name.partition(".")
    here = getattr(config, section, None)
    if not isinstance(here, Section):
        raise _unknown(config, name)
    if field not in settings_of(type(here)):
        owners = [other for other, there in here.variants().items() if hasattr(there, field)]
        if not owners:
            raise _unknown(config, name)
        listed = " or ".join(filter(None, [", ".join(owners[:-1]), owners[-1]]))
        raise UserError(f"{name} isn't a setting of this run: it belongs to {section}.name="
                        f"{listed}, and this one is {here.name}.")
    setting = settings_of(type(here))[field]
    if field == "name" and here.variants():
        return dataclasses.replace(setting, choices=tuple(here.variants()))
    return setting


def _unknown(config: Any, name: str) -> UserError:
    sections = ", ".join(field.name for field in dataclasses.fields(config))
    return UserError(f"unknown setting {shown(name)}.{suggestion(name, flatten(config))} "
                     f"Sections: {sections}.")


def defaults(sizes: Mapping[str, Any], name: str) -> str:
    """Returns the default of a setting, or the default of each size where they differ.

    Args:
        sizes: name of a model size -> its configuration.
        name: "section.field".
    """
    values = {size: flatten(config)[name] for size, config in sizes.items()}
    setting = setting_of(next(iter(sizes.values())), name)
    if len(set(values.values())) == 1:
        return setting.shown(next(iter(values.values())))
    return ", ".join(f"{size} {setting.shown(value)}" for size, value in values.items())


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
