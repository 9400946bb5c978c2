"""What `--help` says about flags that stand for settings."""

import pytest
from absl import flags

from electra_tf.config import finetuning_flags, pretraining_flags
from electra_tf.config.finetuning import finetuning_config
from electra_tf.config.overrides import flatten
from electra_tf.config.pretraining import PretrainingConfig
from tests import command_flags

PROGRAMS = pytest.mark.parametrize(("program", "config"), [
    (pretraining_flags, PretrainingConfig()),
    (finetuning_flags, finetuning_config(PretrainingConfig().model))],
    ids=["pretraining", "finetuning"])


@PROGRAMS
def test_every_settings_flag_has_its_meaning_and_its_default(program, config):
    with command_flags.defined(program.define):
        texts = {name: flags.FLAGS[name].help for name in program.SETTINGS}
    assert all(text.split("Default: ")[0] for text in texts.values())
    without_default = [name for name, text in texts.items() if ". Default: " not in text]
    values = flatten(config)
    assert [name for name in without_default if values[program.SETTINGS[name]] != ""] == []


def test_help_says_the_default_of_each_size_choices_and_prices():
    with command_flags.defined(pretraining_flags.define):
        help_of = {name: flags.FLAGS[name].help for name in pretraining_flags.SETTINGS}
    assert help_of["num_train_steps"].endswith(
        "Default: tiny 3,000, small 1,000,000, base 766,000, large 400,000.")
    assert "`" not in help_of["precision"]
    assert "One of auto, float32, bfloat16, float16." in help_of["precision"]
    assert "about 5 % slower" in help_of["deterministic"]
