"""Command-line flags of `run_pretraining.py`, and the configuration that they select."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from electra_tf.config import recipes, setting_flags
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.setting_flags import ANY_SETTING, HARDWARE, of_fields
from electra_tf.config.sizes import SIZES, pretraining_config
from electra_tf.platform.section_flags import define_flags
from electra_tf.platform.settings import Section


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingFlags(Section, prefix="--"):
    """Flags that select the mode and the files of a command."""

    data_dir: str = ""
    """Directory of records that data_prep built. Default: records."""
    model_dir: str = ""
    """Directory of this run: checkpoints, metrics, curves. Default: runs/ and the model's size."""
    model_size: str = ""
    """tiny, small, base or large. Default: the size of --init_checkpoint, otherwise small. A run
    in --model_dir keeps all its settings if --model_size and --recipe aren't given."""
    recipe: Literal["paper", "short"] = "paper"
    """paper, for a million steps; or short, for minutes to days on little hardware, with other
    initial weights, learning rate and dropout (docs/explanation/short_runs.md)."""
    mode: Literal["train", "eval", "samples"] = "train"
    """train continues where the run stopped, eval scores the newest checkpoint on the held-out
    shards, samples shows its corruptions and verdicts for some sentences."""
    restart: bool = False
    """Remove what an earlier run left in --model_dir, and begin again."""
    init_checkpoint: str = ""
    """Initial networks of the same vocabulary, whose shape the run takes: another run's directory
    (other records, another length, or a masked language model before ELECTRA), Google's checkpoint
    or a directory of Hugging Face's. Default: new weights."""
    vocab_file: str = ""
    """Must equal the records' vocabulary. Default: theirs."""


TRAINING = (
    *of_fields("training", "num_train_steps", "train_batch_size"),
    *of_fields("optimizer", "learning_rate", "warmup_steps"),
    *of_fields("training", "seed", "precision"),
    *of_fields("data", "max_seq_length"),
)
REPORTING = of_fields(
    "runtime", "save_checkpoints_steps", "keep_checkpoint_max", "log_every_steps",
    "log_every_seconds", "grace_seconds", "sample_every_steps", "eval_every_steps", "eval_steps",
    "eval_batch_size")
DEVICES = (*HARDWARE, *of_fields("runtime", "steps_per_loop"))
SETTINGS = TRAINING + DEVICES + REPORTING
GROUPS = {
    "Model and data": tuple(field.name for field in dataclasses.fields(PretrainingFlags)),
    "Training": tuple(flag.name for flag in TRAINING),
    "Hardware": tuple(flag.name for flag in DEVICES),
    "Checkpoints and reports": tuple(flag.name for flag in REPORTING),
    "Any other setting": ANY_SETTING,
}


def define() -> None:
    """Defines all flags of `run_pretraining.py`."""
    define_flags(PretrainingFlags)
    setting_flags.define(SETTINGS, SIZES)


def build_config(model_size: str | None, recipe: str,
                 changes: Mapping[str, Any]) -> PretrainingConfig:
    """Returns the size's settings (small by default) with the recipe's and then these changes."""
    size = pretraining_config(model_size or "small")
    own = recipes.settings_of(recipe, override(size, changes))
    return override(override(size, own), changes)
