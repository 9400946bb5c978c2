"""The runs of one command: one, or two if a generator is trained first."""

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any

from electra_tf.checkpoints import formats, run_directory
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import read_step
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.objectives.registry import objective_class
from electra_tf.platform.storage import Path
from electra_tf.pretraining.setup import Run, prepare


def runs(config: PretrainingConfig, data_dir: str | Path, model_dir: Path,
         vocab_file: Path | None = None, initial: Pretrained | None = None, *,
         given: Collection[str] = (), restart: bool = False) -> Iterator[Run]:
    """Yields every run of a command when the previous run is finished.

    Arguments are those of `setup.prepare`. The steps of `config` are those of all stages; a first
    stage has a directory within `model_dir`. `restart` removes the files of earlier runs first.

    Raises:
        UserError: see `setup.prepare`.
    """
    total = config.training.num_train_steps
    first = config.objective.generator_steps(total)
    if first:
        directory = config.objective.generator_dir(model_dir)
        if not restart and run_directory.is_taken(model_dir):
            # More steps extend the second stage.
            first = run_directory.read_identity(directory)["training.num_train_steps"]
        if restart or not _is_finished(directory, first):
            print(f"stage 1 of 2: the generator, {first:,} steps, in {directory}", flush=True)
            yield _prepared(override(config, {
                "objective.name": objective_class(config.objective.name).generator_objective,
                "training.num_train_steps": first}), data_dir, directory,
                vocab_file, initial, given, restart=restart)
        # Without its path, so that a directory can be moved between two stages.
        initial = dataclasses.replace(
            formats.read(directory), source=f"the generator of stage 1, step {first:,}")
        print(f"stage 2 of 2: the discriminator, {total - first:,} steps, in {model_dir}",
              flush=True)
        config = override(config, {"training.num_train_steps": total - first})
    yield _prepared(config, data_dir, model_dir, vocab_file, initial, given, restart=restart)


def settings_of_run(model_dir: Path) -> dict[str, Any]:
    """Returns the settings of a run, by name; its steps are those of all stages.

    Raises:
        UserError: there is no run, or its settings are damaged.
    """
    saved = run_directory.settings_of(run_directory.read_identity(model_dir))
    config = override(PretrainingConfig(), saved)
    if config.objective.generator_steps(config.training.num_train_steps):
        first = run_directory.read_identity(config.objective.generator_dir(model_dir))
        saved["training.num_train_steps"] += first["training.num_train_steps"]
    return saved


def _prepared(config: PretrainingConfig, data_dir: str | Path, model_dir: Path,
              vocab_file: Path | None, initial: Pretrained | None, given: Collection[str], *,
              restart: bool) -> Run:
    """Prepares a run and then, with `restart`, removes the files of earlier runs."""
    run = prepare(config, data_dir, model_dir, vocab_file, initial, given=given, restart=restart)
    if restart:
        run_directory.restart(model_dir)
    return run


def _is_finished(directory: Path, steps: int) -> bool:
    found = (directory / run_directory.METRICS_FILE).exists()
    return found and read_step(directory) >= steps
