"""Command-line flags of settings.

A flag is a short name of one setting. `--set section.field=value` and `--config=file.yaml` reach
all settings. Flags win over `--set`, which wins over the file, which wins over the defaults.
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from absl import flags

from electra_tf.config.overrides import defaults, parse_assignments, read_yaml, setting_of
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.section_flags import define_flag


@dataclasses.dataclass(frozen=True)
class SettingFlag:
    """A flag that sets one setting."""

    name: str
    setting: str


def of_fields(section: str, *fields: str) -> tuple[SettingFlag, ...]:
    """Returns flags with the names of a section's fields."""
    return tuple(SettingFlag(field, f"{section}.{field}") for field in fields)


HARDWARE = of_fields(
    "runtime", "distribution_strategy", "tpu", "num_gpus", "num_replicas",
    "gradient_accumulation_steps", "gradient_checkpointing", "xla", "deterministic")
ANY_SETTING = ("set", "config")
"""Names of the flags for all other settings."""


def define(setting_flags: Iterable[SettingFlag], sizes: Mapping[str, Any]) -> None:
    """Defines setting flags, `--set` and `--config`; the value None means "not given".

    Args:
        setting_flags: the flags.
        sizes: name of a model size -> its configuration, which has the defaults.
    """
    flags.DEFINE_multi_string(
        "set", [], "section.field=value, any number of times; "
        "docs/configuration.md lists all settings.")
    flags.DEFINE_string("config", None, "YAML file with sections and fields.")
    for flag in setting_flags:
        config = next(iter(sizes.values()))
        define_flag(flag.name, setting_of(config, flag.setting), defaults(sizes, flag.setting))


@contextlib.contextmanager
def naming_flags(setting_flags: Iterable[SettingFlag]) -> Iterator[None]:
    """Lets errors call a setting by the flag that set it, as it was typed."""
    try:
        yield
    except UserError as error:
        message = str(error)
        for flag in setting_flags:
            if flags.FLAGS[flag.name].value is not None:
                message = re.sub(rf"(?<![\w.]){re.escape(flag.setting)}\b(?!\))",
                                 f"--{flag.name} ({flag.setting})", message)
        raise UserError(message) from error


def given_settings(setting_flags: Iterable[SettingFlag]) -> dict[str, Any]:
    """Returns setting -> value of everything that the command line and its file set."""
    values = flags.FLAGS
    changes: dict[str, Any] = read_yaml(storage.path(values.config)) if values.config else {}
    changes |= parse_assignments(values.set)
    for flag in setting_flags:
        value = values[flag.name].value
        if value is not None:
            changes[flag.setting] = value
    return changes
