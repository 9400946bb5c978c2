"""The runs of one command: one, or two if a generator is trained first."""

import dataclasses
from collections.abc import Iterator

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
         restart: bool = False) -> Iterator[Run]:
    """Yields every run of a command when the previous run is finished.

    Args:
        config: the command's settings; its steps are those of all stages.
        data_dir: see `setup.prepare`.
        model_dir: directory of the last run; a first stage has a directory within.
        vocab_file: see `setup.prepare`.
        initial: initial networks of the first run.
        restart: remove the files of earlier runs first.

    Raises:
        UserError: see `setup.prepare`.
    """
    total = config.training.num_train_steps
    first = config.objective.generator_steps(total)
    if first:
        directory = config.objective.generator_dir(model_dir)
        if restart or not _is_finished(directory, first):
            print(f"stage 1 of 2: the generator, {first:,} steps, in {directory}", flush=True)
            yield _prepared(override(config, {
                "objective.name": objective_class(config.objective.name).generator_objective,
                "training.num_train_steps": first}), data_dir, directory,
                vocab_file, initial, restart=restart)
        # Without its path, so that a directory can be moved between two stages.
        initial = dataclasses.replace(
            formats.read(directory), source=f"the generator of stage 1, step {first:,}")
        print(f"stage 2 of 2: the discriminator, {total - first:,} steps, in {model_dir}",
              flush=True)
        config = override(config, {"training.num_train_steps": total - first})
    yield _prepared(config, data_dir, model_dir, vocab_file, initial, restart=restart)


def _prepared(config: PretrainingConfig, data_dir: str | Path, model_dir: Path,
              vocab_file: Path | None, initial: Pretrained | None, *, restart: bool) -> Run:
    """Prepares a run and then, with `restart`, removes the files of earlier runs."""
    run = prepare(config, data_dir, model_dir, vocab_file, initial)
    if restart:
        run_directory.restart(model_dir)
    return run


def _is_finished(directory: Path, steps: int) -> bool:
    found = (directory / run_directory.METRICS_FILE).exists()
    return found and read_step(directory) >= steps
