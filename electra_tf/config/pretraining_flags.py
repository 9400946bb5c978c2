"""Command-line flags of `run_pretraining.py`."""

import dataclasses
from typing import Literal

from electra_tf.config import overrides
from electra_tf.config.pretraining import SIZES, PretrainingConfig
from electra_tf.platform.setting_flags import define_flags
from electra_tf.platform.settings import Section, settings_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class PretrainingFlags(Section, prefix="--"):
    """Mode, size and files of a command."""

    data_dir: str = ""
    """Directory of records that data_prep built. Default: records."""
    model_dir: str = ""
    """Directory of this run: checkpoints, metrics, curves. Default: runs/ and the model's size."""
    model_size: str = ""
    """tiny, small, base or large. Default: that of the run in --model_dir or of --init_checkpoint,
    otherwise small."""
    recipe: Literal["paper", "short"] = "paper"
    """paper, for a million steps; or short, for minutes to days on little hardware, with other
    initial weights, learning rate and dropout (docs/explanation/short_runs.md)."""
    mode: Literal["train", "eval", "samples"] = "train"
    """train continues where the run stopped, eval scores the newest checkpoint on the held-out
    shards, samples shows its corruptions and detections for some sentences."""
    restart: bool = False
    """Remove what an earlier run left in --model_dir, and begin again."""
    init_checkpoint: str = ""
    """Initial networks of the same vocabulary, whose shape the run takes: another run's directory,
    Google's checkpoint or a directory of Hugging Face's. Default: new weights."""
    vocab_file: str = ""
    """Must equal the records' vocabulary. Default: theirs."""


SETTINGS = overrides.flags_of(PretrainingConfig(), "pretraining")
GROUPS = overrides.help_groups({"Model and data": settings_of(PretrainingFlags)}, SETTINGS)


def define() -> None:
    """Defines all flags of `run_pretraining.py`."""
    define_flags(PretrainingFlags)
    overrides.define_setting_flags(SETTINGS, SIZES)
