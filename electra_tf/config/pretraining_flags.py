"""Command-line flags of `run_pretraining.py`, and the configuration that they make."""

from collections.abc import Mapping
from typing import Any

from absl import flags

from electra_tf.config import export_flags, recipes, setting_flags
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.setting_flags import ANY_SETTING, HARDWARE, PRECISION, SettingFlag
from electra_tf.config.sizes import pretraining_config

TRAINING = (
    SettingFlag("num_train_steps", "training.num_train_steps",
                "Steps of the whole run; the learning rate reaches zero there. Default: the "
                "paper's for the size (3,000 tiny, 1,000,000 small, 766,000 base, 400,000 large)."),
    SettingFlag("train_batch_size", "training.train_batch_size",
                "Examples per step, over all devices. Default: the paper's (16 tiny, 128 small, "
                "256 base, 2048 large)."),
    SettingFlag("learning_rate", "optimizer.learning_rate",
                "Peak rate. Default: the paper's (5e-4 small, 2e-4 the others)."),
    SettingFlag("warmup_steps", "optimizer.warmup_steps",
                "Steps of linear warm-up. Default: 10,000, a tenth of a shorter run, 600 tiny."),
    SettingFlag("seed", "training.seed", "Of weights, order, masks, samples, dropout. Default: 1."),
    PRECISION,
    SettingFlag("max_seq_length", "data.max_seq_length",
                "Must equal the records'. Default: theirs."),
)
REPORTING = (
    SettingFlag("save_checkpoints_steps", "runtime.save_checkpoints_steps",
                "Steps between checkpoints. Default: 1000."),
    SettingFlag("keep_checkpoint_max", "runtime.keep_checkpoint_max",
                "Newest checkpoints kept; 0 keeps all. Default: 3."),
    SettingFlag("log_every_steps", "runtime.log_every_steps",
                "Steps between progress lines and lines of metrics.jsonl. Default: 100, a "
                "twentieth of a run below 2,000 steps."),
    SettingFlag("log_every_seconds", "runtime.log_every_seconds",
                "A progress line comes after so many seconds without one, too; 0: only by steps. "
                "Default: 30."),
    SettingFlag("grace_seconds", "runtime.grace_seconds",
                "Several workers end so long after SIGTERM at the latest. Default: 30."),
    SettingFlag("sample_every_steps", "runtime.sample_every_steps",
                "Steps between sample corruptions for TensorBoard; 0 for none. Default: 1000."),
    SettingFlag("eval_every_steps", "runtime.eval_every_steps",
                "Steps between evaluations; 0 evaluates at the end only. Default: 0."),
    SettingFlag("eval_steps", "runtime.eval_steps",
                "Batches per evaluation; 0 for all held-out examples. Default: 100."),
    SettingFlag("eval_batch_size", "runtime.eval_batch_size",
                "Examples per evaluation batch. Default: 32."),
)
SETTINGS = TRAINING + HARDWARE + REPORTING
GROUPS = {
    "Model and data": ("data_dir", "model_dir", "model_size", "recipe", "mode", "restart",
                       "init_checkpoint", "vocab_file"),
    "Training": tuple(flag.name for flag in TRAINING),
    "Hardware": tuple(flag.name for flag in HARDWARE),
    "Checkpoints and reports": tuple(flag.name for flag in REPORTING),
    "Export": export_flags.NAMES,
    "Any other setting": ANY_SETTING,
}


def define() -> None:
    """Defines all flags of `run_pretraining.py`; None means that a flag wasn't given."""
    flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built.")
    flags.DEFINE_string("model_dir", None, "Directory of this run: checkpoints, metrics, curves.")
    flags.DEFINE_bool(
        "restart", False, "Remove what an earlier run left in --model_dir, and begin again.")
    flags.DEFINE_string("model_size", None, "tiny, small, base or large. Default: small.")
    flags.DEFINE_string(
        "recipe", recipes.PAPER, "paper, made for a million steps, or short, for minutes to days "
        "on little hardware: other initial weights, rate and dropout; docs/recipes.md.")
    flags.DEFINE_string(
        "mode", "train", "train (continues where the run stopped), eval (scores the newest "
        "checkpoint on the held-out shards), samples (shows what it does to some sentences) or "
        "export (writes the discriminator to --export_dir; needs no --data_dir).")
    flags.DEFINE_string(
        "init_checkpoint", None, "Networks to begin with, of the same shapes and vocabulary: "
        "another run's directory (other records, another length, or a masked language model before "
        "ELECTRA), Google's checkpoint or a directory of Hugging Face's. Default: new weights.")
    flags.DEFINE_string(
        "vocab_file", None, "Checked against the records' vocabulary. Default: theirs.")
    export_flags.define()
    setting_flags.define(SETTINGS)


def given_settings() -> dict[str, Any]:
    """Returns setting -> value of everything that the command line and its file set."""
    return setting_flags.given_settings(SETTINGS)


def build_config(model_size: str | None, recipe: str,
                 changes: Mapping[str, Any]) -> PretrainingConfig:
    """Returns the size's settings (small by default) with the recipe's and then these changes."""
    size = pretraining_config(model_size or "small")
    own = recipes.settings_of(recipe, override(size, changes))
    return override(override(size, own), changes)
