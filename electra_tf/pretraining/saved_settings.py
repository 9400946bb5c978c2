"""Settings of a pre-training run that its directory holds, without importing TensorFlow."""

from collections.abc import Collection
from typing import Any

from electra_tf.checkpoints.run_directory import (
    STEPS,
    read_identity,
    refuse_differences,
    settings_of,
)
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core.storage import Path


def all_settings(model_dir: Path) -> dict[str, Any]:
    """Returns the settings of a run, with the steps of all its stages."""
    saved = settings_of(read_identity(model_dir, PretrainingConfig()))
    objective = override(PretrainingConfig(), saved).objective
    if objective.generator_steps(saved[STEPS]):
        directory = objective.generator_dir(model_dir)
        saved[STEPS] += read_identity(directory, PretrainingConfig())[STEPS]
    return saved


def saved_config(model_dir: Path, config: PretrainingConfig,
                 required: Collection[str]) -> PretrainingConfig:
    """Returns the configuration of the run in a directory, with `config`'s runtime settings.

    `required` are names of settings or sections that must have the run's values.
    """
    # Given values must equal the saved ones, unless they leave the choice to the run.
    saved = read_identity(model_dir, PretrainingConfig())
    settings = {name: value for name, value in flatten(config).items()
                if (name in required or name.split(".")[0] in required) and name in saved
                and name != "model.vocab_size" and value not in ("auto", 0)}
    refuse_differences(model_dir, {name: saved[name] for name in settings}, settings)
    return override(config, settings_of(saved))
