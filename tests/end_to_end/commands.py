"""Commands in this process, as their command lines call them."""

import pytest

from electra_tf.apps.tools import convert_checkpoint, export_model
from electra_tf.core.errors import UserError
from electra_tf.finetuning import command as finetuning_command
from electra_tf.pretraining import command as pretraining_command
from tests.support import command_flags, tiny_run

HARDWARE = ("--distribution_strategy=one_device", "--precision=float32",
            "--set=runtime.cpu_parts=1")
ONE_LAYER = ("--model_size=tiny", *tiny_run.FLAGS, "--set=model.num_layers=1",
             "--set=optimizer.warmup_steps=2")
OFTEN = tiny_run.OFTEN[1:]
"""Saves and logs every other step, without a size."""


def pretrain(*arguments: object) -> None:
    command_flags.run(pretraining_command, *arguments)


def train(records, model_dir, *flags: str) -> None:
    """Pre-trains networks of one layer for four steps, saved and logged every other step."""
    pretrain(f"--data_dir={records}", f"--model_dir={model_dir}", *ONE_LAYER, *OFTEN,
             "--num_train_steps=4", *flags)


def finetune(*arguments: object) -> None:
    command_flags.run(finetuning_command, *arguments)


def convert(*arguments: object) -> None:
    command_flags.run(convert_checkpoint, *arguments)


def export(*arguments: object) -> None:
    command_flags.run(export_model, *arguments)


def refused(command, *arguments: object) -> str:
    """Returns the error of a command."""
    with pytest.raises(UserError) as error:
        command(*arguments)
    return str(error.value)
