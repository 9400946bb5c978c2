"""Command-line flags of the settings that people change most, and the configuration they make.

Every flag here is a short name of one setting. The others are reached by
`--set section.field=value` or by `--config=file.yaml`; flags win over `--set`, which wins over
the file, which wins over the model size's defaults.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from absl import flags

from electra_tf.config.overrides import override, parse_assignments, read_yaml
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.config.sizes import pretraining_config


@dataclasses.dataclass(frozen=True)
class SettingFlag:
    """A flag that stands for one setting."""

    name: str
    setting: str
    help: str
    is_bool: bool = False


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
    SettingFlag("precision", "training.precision",
                "float32, bfloat16, float16 (with loss scaling) or auto: bfloat16 where the "
                "device multiplies it natively. Default: auto."),
    SettingFlag("max_seq_length", "data.max_seq_length",
                "Must equal the records'. Default: theirs."),
)
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
REPORTING = (
    SettingFlag("save_checkpoints_steps", "runtime.save_checkpoints_steps",
                "Steps between checkpoints. Default: 1000."),
    SettingFlag("keep_checkpoint_max", "runtime.keep_checkpoint_max",
                "Newest checkpoints kept; 0 keeps all. Default: 3."),
    SettingFlag("log_every_steps", "runtime.log_every_steps",
                "Steps between progress lines and lines of metrics.jsonl. Default: 100."),
    SettingFlag("sample_every_steps", "runtime.sample_every_steps",
                "Steps between sample corruptions for TensorBoard; 0 for none. Default: 1000."),
    SettingFlag("eval_every_steps", "runtime.eval_every_steps",
                "Steps between evaluations; 0 evaluates at the end only. Default: 0."),
    SettingFlag("eval_steps", "runtime.eval_steps",
                "Batches per evaluation; 0 for all held-out examples. Default: 100."),
    SettingFlag("eval_batch_size", "runtime.eval_batch_size",
                "Examples per evaluation batch. Default: 32."),
)
GROUPS = {
    "Model and data": ("data_dir", "model_dir", "model_size", "mode", "vocab_file"),
    "Training": tuple(flag.name for flag in TRAINING),
    "Hardware": tuple(flag.name for flag in HARDWARE),
    "Checkpoints and reports": tuple(flag.name for flag in REPORTING),
    "Any other setting": ("set", "config"),
}


def define() -> None:
    """Defines all flags of `run_pretraining.py`; None means that a flag wasn't given."""
    flags.DEFINE_string("data_dir", None, "Directory of records that data_prep built.")
    flags.DEFINE_string("model_dir", None, "Directory of this run: checkpoints, metrics, curves.")
    flags.DEFINE_string("model_size", None, "tiny, small, base or large. Default: small.")
    flags.DEFINE_string(
        "mode", "train", "train (continues where the run stopped), eval (scores the newest "
        "checkpoint on the held-out shards) or samples (shows what it does to some sentences).")
    flags.DEFINE_string(
        "vocab_file", None, "Checked against the records' vocabulary. Default: theirs.")
    flags.DEFINE_multi_string(
        "set", [], "section.field=value, any number of times; "
        "docs/configuration.md lists all settings.")
    flags.DEFINE_string("config", None, "YAML file with sections and fields.")
    for flag in TRAINING + HARDWARE + REPORTING:
        if flag.is_bool:
            flags.DEFINE_bool(flag.name, None, flag.help)
        else:
            flags.DEFINE_string(flag.name, None, flag.help)


def given_settings() -> dict[str, Any]:
    """Returns setting -> value of everything that the command line and its file set."""
    values = flags.FLAGS
    changes: dict[str, Any] = read_yaml(Path(values.config)) if values.config else {}
    changes |= parse_assignments(values.set)
    for flag in TRAINING + HARDWARE + REPORTING:
        value = values[flag.name].value
        if value is not None:
            changes[flag.setting] = value
    return changes


def build_config(model_size: str | None, changes: Mapping[str, Any]) -> PretrainingConfig:
    """Returns the size's settings (small by default) with the changes made."""
    return override(pretraining_config(model_size or "small"), changes)
