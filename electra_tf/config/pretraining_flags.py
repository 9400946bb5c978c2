"""Command-line flags of `run_pretraining.py`, and the configuration that they make."""

from collections.abc import Mapping
from typing import Any

from absl import flags

from electra_tf.config import export_flags, recipes, setting_flags
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.setting_flags import ANY_SETTING, HARDWARE, of_fields
from electra_tf.config.sizes import SIZES, pretraining_config

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
    "Model and data": ("data_dir", "model_dir", "model_size", "recipe", "mode", "restart",
                       "init_checkpoint", "vocab_file"),
    "Training": tuple(flag.name for flag in TRAINING),
    "Hardware": tuple(flag.name for flag in DEVICES),
    "Checkpoints and reports": tuple(flag.name for flag in REPORTING),
    "Any other setting": ANY_SETTING,
}


def define() -> None:
    """Defines all flags of `run_pretraining.py`; None means that a flag wasn't given."""
    flags.DEFINE_string(
        "data_dir", None, "Directory of records that data_prep built; or several with their "
        "weights, a:0.5,b:0.5 (docs/data_reading.md).")
    flags.DEFINE_string("model_dir", None, "Directory of this run: checkpoints, metrics, curves.")
    flags.DEFINE_bool(
        "restart", False, "Remove what an earlier run left in --model_dir, and begin again.")
    flags.DEFINE_string("model_size", None, "tiny, small, base or large. Default: small.")
    flags.DEFINE_string(
        "recipe", recipes.PAPER, "paper, made for a million steps, or short, for minutes to days "
        "on little hardware: other initial weights, rate and dropout; docs/recipes.md.")
    flags.DEFINE_string(
        "mode", "train", "train (continues where the run stopped), eval (scores the newest "
        "checkpoint on the held-out shards) or samples (shows what it does to some sentences).")
    flags.DEFINE_string(
        "init_checkpoint", None, "Networks to begin with, of the same shapes and vocabulary: "
        "another run's directory (other records, another length, or a masked language model before "
        "ELECTRA), Google's checkpoint or a directory of Hugging Face's. Default: new weights.")
    flags.DEFINE_string(
        "vocab_file", None, "Checked against the records' vocabulary. Default: theirs.")
    export_flags.define()  # For the message of --mode=export, which names the new command.
    setting_flags.define(SETTINGS, SIZES)


def given_settings() -> dict[str, Any]:
    """Returns setting -> value of everything that the command line and its file set."""
    return setting_flags.given_settings(SETTINGS)


def build_config(model_size: str | None, recipe: str,
                 changes: Mapping[str, Any]) -> PretrainingConfig:
    """Returns the size's settings (small by default) with the recipe's and then these changes."""
    size = pretraining_config(model_size or "small")
    own = recipes.settings_of(recipe, override(size, changes))
    return override(override(size, own), changes)
