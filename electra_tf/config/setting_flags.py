"""Command-line flags that stand for settings, and what every command has of them.

A flag here is a short name of one setting. The others are reached by `--set section.field=value`
or by `--config=file.yaml`; flags win over `--set`, which wins over the file, which wins over the
defaults.
"""

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Iterator
from typing import Any

from absl import flags

from electra_tf import storage
from electra_tf.command_line import UserError
from electra_tf.config.overrides import parse_assignments, read_yaml


@dataclasses.dataclass(frozen=True)
class SettingFlag:
    """A flag that stands for one setting."""

    name: str
    setting: str
    help: str
    is_bool: bool = False


HARDWARE = (
    SettingFlag("distribution_strategy", "runtime.distribution_strategy",
                "auto, one_device, mirrored, multi_worker_mirrored (with TF_CONFIG) or tpu. "
                "Default: auto."),
    SettingFlag("tpu", "runtime.tpu", 'TPU name, grpc:// address, or "local" on a TPU VM.'),
    SettingFlag("num_gpus", "runtime.num_gpus", "GPUs to use. Default: all."),
    SettingFlag("gradient_accumulation_steps", "runtime.gradient_accumulation_steps",
                "Micro-batches per step, to fit a large batch into little memory. Default: 1."),
    SettingFlag("gradient_checkpointing", "runtime.gradient_checkpointing",
                "Recompute layers for the gradient: less memory, a third more time.",
                is_bool=True),
    SettingFlag("xla", "runtime.xla",
                "Compile the step with XLA: auto (on a GPU), on or off. Default: auto."),
    SettingFlag("deterministic", "runtime.deterministic",
                "Bit-identical results from run to run; 5 % slower, on a CPU up to 20 %.",
                is_bool=True),
)
PRECISION = SettingFlag(
    "precision", "training.precision",
    "float32, bfloat16, float16 (with loss scaling) or auto: bfloat16 where the device multiplies "
    "it natively. Default: auto.")
ANY_SETTING = ("set", "config")
"""Names of the flags for all other settings."""


def define(setting_flags: Iterable[SettingFlag]) -> None:
    """Defines setting flags, `--set` and `--config`; None means that a flag wasn't given."""
    flags.DEFINE_multi_string(
        "set", [], "section.field=value, any number of times; "
        "docs/configuration.md lists all settings.")
    flags.DEFINE_string("config", None, "YAML file with sections and fields.")
    for flag in setting_flags:
        if flag.is_bool:
            flags.DEFINE_bool(flag.name, None, flag.help)
        else:
            flags.DEFINE_string(flag.name, None, flag.help)


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
