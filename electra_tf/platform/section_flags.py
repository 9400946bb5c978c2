"""Command-line flags that are derived from declared settings."""

from collections.abc import Iterable
from typing import Any, TypeVar

from absl import flags

from electra_tf.platform.settings import Section, Setting, settings_of

Kind = TypeVar("Kind", bound=Section)


def define_flag(name: str, setting: Setting, default: str, value: Any = None) -> None:
    """Defines the flag of a setting.

    Args:
        name: the flag's name.
        setting: its declaration.
        default: shown in the help text.
        value: the flag's value unless it is given.
    """
    text = setting.meaning.replace("`", "") + (f" Default: {default}." if default else "")
    define = {bool: flags.DEFINE_bool, tuple: flags.DEFINE_list}.get(
        setting.kind, flags.DEFINE_string)
    define(name, value, text)


def define_flags(kind: type[Section], names: Iterable[str] | None = None) -> None:
    """Defines flags with the names of a section's fields, by default of all fields.

    The value of a flag that is not given is the default of texts and truth values, otherwise None.
    """
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
    """Returns a section with the values of given flags, and of `others` for the rest.

    Raises:
        UserError: a value of another type or out of bounds.
    """
    known = settings_of(kind)
    given = {name: flags.FLAGS[name].value for name in names or known}
    return kind(**(others | {
        name: tuple(value) if known[name].kind is tuple else known[name].read(value)
        for name, value in given.items() if value is not None}))
