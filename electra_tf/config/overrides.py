"""Strict changes to a configuration by name, from Python, a YAML file or the command line.

A name is `section.field`; an unknown one, or a value of the wrong type, is a `UserError`. Flags for
single settings override `--set section.field=value`, which overrides `--config=file.yaml`, which
overrides the defaults.
"""

import contextlib
import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from absl import flags

from electra_tf.platform import setting_text, storage, strict_yaml
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.settings import Section, Setting, require_one_of, settings_of, suggestion
from electra_tf.platform.storage import Path

Config = TypeVar("Config")
SettingFlags = Mapping[str, str]
"""Flag -> the setting that it sets."""
ANY_SETTING = ("set", "config")
"""Names of the flags for all other settings."""


def override(config: Config, changes: Mapping[str, Any]) -> Config:
    """Returns a copy of `config` with each `section.field` set to its value.

    Strings are converted to the field's type. A section with variants is first replaced by the
    variant that `section.name` selects.
    """
    for section, here in vars(config).items():
        wanted = changes.get(f"{section}.name")
        if wanted is not None and (variants := here.variants()):
            require_one_of(variants, f"{section}.name", wanted)
            if wanted != here.name:
                config = dataclasses.replace(config, **{section: variants[wanted]})
    by_section: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        section, _, field = name.partition(".")
        by_section.setdefault(section, {})[field] = setting_text.read(
            setting_of(config, name), value)
    return dataclasses.replace(config, **{
        section: dataclasses.replace(getattr(config, section), **fields)
        for section, fields in by_section.items()})


def setting_of(config: Any, name: str) -> Setting:
    """Returns the declaration of `section.field`, or raises `UserError` with the nearest name."""
    section, _, field = name.partition(".")
    here = getattr(config, section, None)
    variants = here.variants() if isinstance(here, Section) else {}
    if not isinstance(here, Section) or field not in settings_of(type(here)):
        if owners := [other for other, there in variants.items() if hasattr(there, field)]:
            raise UserError(f"{name} isn't a setting of this run: it belongs to {section}.name="
                            f"{', '.join(owners)}, and this one is {here.name}.")
        raise UserError(f"unknown setting {shown(name)}.{suggestion(name, flatten(config))} "
                        f"Sections: {', '.join(vars(config))}.")
    setting = settings_of(type(here))[field]
    if field == "name" and variants:
        return dataclasses.replace(setting, choices=tuple(variants))
    return setting


def defaults(sizes: Mapping[str, Any], name: str) -> str:
    """Returns the default of `section.field` in words, or of each size where they differ."""
    setting = setting_of(next(iter(sizes.values())), name)
    values = {size: setting_text.written(setting, flatten(config)[name])
              for size, config in sizes.items()}
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"{size} {value}" for size, value in values.items())


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
    return {f"{section}.{name}": value.value if isinstance(value, enum.Enum) else value
            for section, fields in vars(config).items() for name, value in vars(fields).items()}


def flag_groups(config: Any, program: str) -> dict[str, SettingFlags]:
    """Returns a program's flags of settings by their group in `--help`."""
    groups: dict[str, dict[str, str]] = {}
    for section in vars(config).values():
        for name, setting in settings_of(type(section)).items():
            if program in setting.flag.programs:
                groups.setdefault(setting.flag.group, {})[name] = setting.name
    return groups


def define_setting_flags(setting_flags: SettingFlags, sizes: Mapping[str, Any]) -> None:
    """Defines flags, `--set` and `--config`; help texts show the defaults of `sizes`."""
    flags.DEFINE_multi_string(
        "set", [], "section.field=value, any number of times; "
        "docs/configuration.md lists all settings.")
    flags.DEFINE_string("config", None, "YAML file with sections and fields.")
    for name, setting in setting_flags.items():
        config = next(iter(sizes.values()))
        setting_text.define_flag(name, setting_of(config, setting), defaults(sizes, setting))


@contextlib.contextmanager
def naming_flags(setting_flags: SettingFlags) -> Iterator[None]:
    """Names the flags that set a setting in the errors of a block."""
    try:
        yield
    except UserError as error:
        message = str(error)
        for name, setting in setting_flags.items():
            if flags.FLAGS[name].value is not None:
                message = re.sub(rf"(?<![\w.]){re.escape(setting)}\b(?!\))",
                                 f"--{name} ({setting})", message)
        raise UserError(message) from error


def given_settings(setting_flags: SettingFlags) -> dict[str, Any]:
    """Returns setting -> value of all settings that the command line and its file give."""
    values = flags.FLAGS
    changes: dict[str, Any] = read_yaml(storage.path(values.config)) if values.config else {}
    return changes | parse_assignments(values.set) | {
        setting: values[name].value for name, setting in setting_flags.items()
        if values[name].value is not None}
