"""Strict changes to a configuration by name, from Python, a YAML file or the command line.

A name is `section.field`; an unknown one, or a value of the wrong type, is a `UserError`. Flags for
single settings override `--set section.field=value`, which overrides `--config=file.yaml`, which
overrides the defaults.
"""

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from absl import flags

from electra_tf.config.objectives import OBJECTIVES, ObjectiveConfig
from electra_tf.core import storage
from electra_tf.core.errors import UserError, shown
from electra_tf.core.setting_flags import define_flag, display_value, given_values
from electra_tf.core.settings import Section, Setting, require_one_of, settings_of, suggestion
from electra_tf.core.storage import Path

Config = TypeVar("Config")
SectionType = TypeVar("SectionType", bound=Section)
Changes = Mapping[str, Any]
"""`section.field` -> value, of the field's type or as text."""
SettingFlags = Mapping[str, Setting]
"""Flag -> the setting that it sets."""
ANY_SETTING = ("set", "config")
"""Names of the flags for all other settings."""
_MAX_BYTES = 64 << 10  # All settings together take 4 KB.


def override(config: Config, changes: Changes) -> Config:
    """Returns a copy of `config` with each `section.field` set to its value.

    Strings are converted to the field's type. Another `objective.name` first replaces the section
    by the defaults of that objective, and ModernBERT's layers imply rotary positions.
    """
    if changes.get("model.architecture") == "modernbert":
        changes = {"model.positions": "rotary", **changes}
    # The section of another objective has other fields, so it is replaced before they are set.
    if "objective.name" in changes and hasattr(config, "objective"):
        name = changes["objective.name"]
        require_one_of(OBJECTIVES, "objective.name", name)
        if name != config.objective.name:
            config = dataclasses.replace(config, objective=OBJECTIVES[name])
    for name in changes:
        setting_of(config, name)  # Refuses an unknown one.
    return dataclasses.replace(config, **{
        name: override_section(section, changes) for name, section in vars(config).items()})


def override_section(section: SectionType, changes: Changes) -> SectionType:
    """Returns a copy of one section with those of the changes that set its fields."""
    return dataclasses.replace(section, **{
        field: setting.read(changes[setting.name])
        for field, setting in settings_of(type(section)).items() if setting.name in changes})


def name_fields(config: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `section.field` -> value of fields that are named without their section."""
    # Field -> `section.field` in all sections that have it; it must be one section.
    sections: dict[str, list[str]] = {}
    for name in flatten(config):
        sections.setdefault(name.partition(".")[2], []).append(name)
    changes = {}
    for field, value in values.items():
        names = sections.get(field, [])
        if len(names) != 1:
            raise UserError(f"unknown setting {shown(field)}.{suggestion(field, sections)} "
                            "docs/configuration.md lists all settings.")
        changes[names[0]] = value
    return changes


def setting_of(config: Any, name: str) -> Setting:
    """Returns the declaration of `section.field`, or raises `UserError` with the nearest name."""
    # A setting of the section, or one that another objective's section has, or a misspelt name.
    section_name, _, field = name.partition(".")
    section = getattr(config, section_name, None)
    if isinstance(section, Section) and field in settings_of(type(section)):
        setting = settings_of(type(section))[field]
        return (dataclasses.replace(setting, choices=tuple(OBJECTIVES))
                if name == "objective.name" else setting)
    if isinstance(section, ObjectiveConfig) and (owners := [
            other for other, variant in OBJECTIVES.items() if hasattr(variant, field)]):
        raise UserError(f"{name} isn't a setting of this run: it belongs to objective.name="
                        f"{', '.join(owners)}, and this one is {section.name}.")
    raise UserError(f"unknown setting {shown(name)}.{suggestion(name, flatten(config))} "
                    f"Sections: {', '.join(vars(config))}.")


def flatten(config: Any) -> dict[str, Any]:
    """Returns every setting as `section.field` -> plain value (enums by their value)."""
    return {f"{section}.{name}": value.value if isinstance(value, enum.Enum) else value
            for section, fields in vars(config).items() for name, value in vars(fields).items()}


def defaults(sizes: Mapping[str, Any], name: str) -> str:
    """Returns the default of `section.field` in words, or of each size where they differ."""
    values: dict[str, list[str]] = {}
    for size, config in sizes.items():
        values.setdefault(display_value(flatten(config)[name]), []).append(size)
    if len(values) == 1:
        return next(iter(values))
    return "; ".join(f"{value} for {', '.join(names)}" for value, names in values.items())


def flags_of(config: Any, program: str) -> SettingFlags:
    """Returns the flags of single settings that a program has."""
    return {name: setting for section in vars(config).values()
            for name, setting in settings_of(type(section)).items()
            if program in setting.flag.programs}


def help_groups(own: Mapping[str, Iterable[str]],
                setting_flags: SettingFlags) -> dict[str, Iterable[str]]:
    """Returns title in `--help` -> flags: a program's own, then those of settings."""
    groups: dict[str, Iterable[str]] = {}
    for name, setting in setting_flags.items():
        groups.setdefault(setting.flag.group, []).append(name)
    return {**own, **groups, "Any other setting": ANY_SETTING}


def define_setting_flags(setting_flags: SettingFlags, sizes: Mapping[str, Any]) -> None:
    """Defines flags, `--set` and `--config`; help texts show the defaults of `sizes`."""
    flags.DEFINE_multi_string(
        "set", [], "Any setting, as section.field=value. Repeat the flag for several settings. "
        "docs/configuration.md lists all settings.")
    flags.DEFINE_string("config", None, "YAML file of settings: sections with fields.")
    for setting in setting_flags.values():
        define_flag(setting, defaults(sizes, setting.name))


def given_settings(setting_flags: SettingFlags, grid: Any = None) -> dict[str, Any]:
    """Returns setting -> value of all settings that the command line and its file give.

    If `grid` is a configuration, lists with commas are tuples of values of its settings.
    """
    # Later ones override: the file, --set, flags of single settings.
    path = flags.FLAGS.config
    texts = (read_yaml(storage.path(path)) if path else {}) | parse_assignments(flags.FLAGS.set)
    if grid is not None:
        texts = {name: setting_of(grid, name).read_several(text) or text
                 for name, text in texts.items()}
    return texts | given_values(setting_flags.values(), several=grid is not None)


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Splits `section.field=value` strings, as `--set` takes them, into a mapping."""
    changes = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set takes section.field=value. Received: {shown(assignment)}")
        changes[name.strip()] = value.strip()
    return changes


def read_yaml(path: Path) -> dict[str, str]:
    """Returns `section.field` -> text of a YAML file of sections, or raises `UserError`."""
    return {f"{section}.{field}": text
            for section, fields in read_sections(path, "--config").items()
            for field, text in fields.items()}


def read_sections(path: Path, flag: str) -> dict[str, dict[str, str]]:
    """Returns section -> field -> text of the YAML file of a flag, or raises `UserError`.

    YAML 1.1 converts `010`, `1:30`, `no` and `2026-01-01`; here values stay text, because a setting
    declares its type.
    """
    import yaml  # .venv-compile, for accelerators, has no PyYAML.

    name = f"{flag}={path}"
    try:
        content = storage.read_bytes(path, _MAX_BYTES, f"{name} can't be read: no such file.")
        root = yaml.compose(content.decode("utf-8-sig"), yaml.BaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{name} is not valid YAML: {error}") from error

    def refuse(node: yaml.Node, problem: str) -> NoReturn:
        raise UserError(f"{name}, line {node.start_mark.line + 1}: {problem}.")

    def entries(node: yaml.Node, owner: str, form: str) -> dict[str, yaml.Node]:
        """Returns name -> node of a mapping without duplicate names."""
        if not isinstance(node, yaml.MappingNode):
            refuse(node, f"{owner} must be {form}")
        nodes: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in nodes:
                refuse(key, f"{shown(key.value)} occurs twice, or is not a name")
            nodes[key.value] = value
        return nodes

    # Two levels, and texts below them.
    texts: dict[str, dict[str, str]] = {}
    sections = entries(root, "the file", "sections, each with fields") if root else {}
    for section, node in sections.items():
        texts[section] = {}
        for field, text in entries(node, shown(section), "fields").items():
            if not isinstance(text, yaml.ScalarNode):
                refuse(text, f"{shown(f'{section}.{field}')} must be one value")
            texts[section][field] = text.value
    return texts
