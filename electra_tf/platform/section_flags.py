"""Command-line flags that are derived from declared settings."""

from collections.abc import Iterable
from typing import Any, TypeVar

from absl import flags

from electra_tf.platform.settings import Section, Setting, settings_of

Kind = TypeVar("Kind", bound=Section)


def define_flag(name: str, setting: Setting, default: str) -> None:
    """Defines the flag of a setting; its value is None unless it is given.

    Args:
        name: of the flag.
        setting: its declaration.
        default: shown in the help text.
    """
    text = setting.meaning.replace("`", "") + (f" Default: {default}." if default else "")
    (flags.DEFINE_bool if setting.kind is bool else flags.DEFINE_string)(name, None, text)


def define_flags(kind: type[Section], names: Iterable[str]) -> None:
    """Defines flags with the names of some fields of a section."""
    for name in names:
        setting = settings_of(kind)[name]
        define_flag(name, setting, "" if setting.default is None else setting.shown(
            setting.default))


def from_flags(kind: type[Kind], names: Iterable[str], **others: Any) -> Kind:
    """Returns a section with the values of the given flags, and of `others` for the rest."""
    given = {name: flags.FLAGS[name].value for name in names}
    return kind(**(others | {name: settings_of(kind)[name].read(value)
                             for name, value in given.items() if value is not None}))
