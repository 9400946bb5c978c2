"""Command-line flags of settings."""

import dataclasses
from collections.abc import Iterable
from typing import Any, TypeVar

from absl import flags

from electra_tf.core.settings import Section, Setting, settings_of

AnySection = TypeVar("AnySection", bound=Section)


def display_value(value: Any) -> str:
    """Returns a value as help texts and tables show it; "" for an empty one."""
    if isinstance(value, str | bool):
        return str(value).lower() if isinstance(value, bool) else value
    if isinstance(value, tuple | list):
        return ",".join(value)
    return f"{value:,.0f}" if value == int(value) else f"{value:.4g}"


def define_flag(setting: Setting, default: str, value: Any = None) -> None:
    """Defines a setting's flag: its help text shows `default`, it is `value` if not given."""
    text = setting.meaning.replace("`", "")
    if default and "Default: " not in text:
        text += f" Default: {default}."
    # Numbers are flags of text: the settings convert them, with messages of their own.
    define = {bool: flags.DEFINE_bool, tuple: flags.DEFINE_list}.get(
        setting.kind, flags.DEFINE_string)
    define(setting.field, value, text)
    choices = "|".join(setting.choices)
    forms = {int: "N", float: "RATE" if setting.field.endswith("rate") else "X", tuple: "NAME,..."}
    flags.FLAGS[setting.field].form = forms.get(setting.kind, choices if len(choices) < 60 else "")


def define_flags(section: type[Section], names: Iterable[str] | None = None) -> None:
    """Defines flags of a section's fields; numbers and lists that are not given are None."""
    for name in names or settings_of(section):
        setting = settings_of(section)[name]
        default = setting.default
        define_flag(setting, "" if default is None else display_value(default),
                    default if isinstance(default, str | bool) else None)


def given_values(settings: Iterable[Setting], *, several: bool = False) -> dict[str, Any]:
    """Returns setting -> value of the flags that were given; `UserError` that names a wrong one.

    With `several` a list with commas is a tuple of the setting's values.
    """
    values = {}
    for setting in settings:
        if (text := flags.FLAGS[setting.field].value) is not None:
            flag = dataclasses.replace(setting, name=f"--{setting.field}")
            values[setting.name] = several and flag.read_several(text) or flag.read(text)
    return values


def from_flags(section: type[AnySection], names: Iterable[str] | None = None,
               **others: Any) -> AnySection:
    """Returns a section with the values of given flags, and those of `others` for the rest."""
    values = given_values(settings_of(section)[name] for name in names or settings_of(section))
    return section(**others | {
        name.removeprefix(section.PREFIX): value for name, value in values.items()})


def print_default(name: str) -> None:
    """Prints the value of a flag that was not given, in one line."""
    if not flags.FLAGS[name].present:
        print(f"default  --{name}={flags.FLAGS[name].value}", flush=True)
