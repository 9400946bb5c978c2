"""The training loop: from the newest checkpoint, or from new weights, to the last step.

`train` is the loop of one run; `pretrain` prepares and trains the one or two runs of a command.
"""

import contextlib
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import TextIO

import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files, run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.run_directory import CHECKPOINTS, METRICS_FILE, STEPS
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.core import storage
from electra_tf.core.atomic_file import make_directory
from electra_tf.core.command_line import same_command
from electra_tf.core.errors import UserError
from electra_tf.core.signals import Interrupted, StopRequest
from electra_tf.core.storage import Path
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.pretraining import budget, init_from, multi_worker
from electra_tf.pretraining.evaluation import SHOWN_SAMPLES, Evaluator
from electra_tf.pretraining.multi_worker import Agreement
from electra_tf.pretraining.reporter import Reporter
from electra_tf.pretraining.run import Run, prepare_run
from electra_tf.pretraining.steps import Events, StepMetrics, compile_steps, steps_per_loop
from electra_tf.reporting.loss_curves import draw_curves
from electra_tf.reporting.metrics_log import CHECKPOINT, read_metrics
from electra_tf.reporting.trackers import tracked
from electra_tf.training import failures
from electra_tf.training.devices import distributed
from electra_tf.training.step import TrainState, TrainStep


def pretrain(config: PretrainingConfig, data_dir: str | Path, model_dir: Path,
             vocab_file: Path | None = None, initial: Checkpoint | None = None, *,
             restart: bool = False, seconds: float | None = None) -> Run:
    """Trains the run of a command and returns it; arguments are those of `prepare_run`.

    An objective of two stages first trains a generator, in a directory within `model_dir`; the
    steps of `config` are those of both. `restart` removes the files of earlier runs. With `seconds`
    the run gets the steps that fit into this time, which begins now.
    """
    # A time instead of a number of steps: some seconds of training show the speed.
    if seconds is not None:
        begin = time.monotonic()
        run = prepare_run(config, data_dir, model_dir, vocab_file, initial, restart=True)
        speed = budget.measure(run)
        steps = budget.steps_within(run, speed, seconds - (time.monotonic() - begin))
        if steps == 1:  # The least that is returned.
            raise UserError("--budget leaves no time for training: the measurement, the start "
                            f"({speed.start:.0f} s here) and the evaluation take all of it. Give a "
                            "longer one, or --num_train_steps.")
        tokens = config.training.train_batch_size * run.length
        print(f"budget   {steps:,} steps, at {tokens / speed.step:,.0f} tokens/s", flush=True)
        config = override(config, {STEPS: steps})

    for settings, directory, networks in _stages(config, model_dir, initial, restart=restart):
        run = prepare_run(settings, data_dir, directory, vocab_file, networks, restart=restart)
        for earlier in (directory, model_dir) if restart else ():
            run_directory.restart(earlier)
        train(run)
    return run


def _stages(config: PretrainingConfig, model_dir: Path, initial: Checkpoint | None, *,
            restart: bool) -> Iterator[tuple[PretrainingConfig, Path, Checkpoint | None]]:
    """Yields settings, directory and initial networks of each stage, after the one before."""
    # One stage, or two that share the steps.
    total = config.training.num_train_steps
    generator_steps = config.objective.generator_steps(total)
    if not generator_steps:
        yield config, model_dir, initial
        return

    # Stage 1: a generator of the discriminator's size, unless stage 2 has begun.
    directory = config.objective.generator_dir(model_dir)
    if not restart and run_directory.has_run(model_dir):  # More steps extend the second stage.
        generator_steps = run_directory.read_identity(directory)[STEPS]
    else:
        print(f"stage 1 of 2: the generator, {generator_steps:,} steps, in {directory}", flush=True)
        yield (override(config, {"objective.name": "mlm", STEPS: generator_steps}), directory,
               initial)

    # Stage 2: the discriminator begins with the generator's weights. Their source has no path, so
    # that a directory can be moved between the stages.
    steps = total - generator_steps
    print(f"stage 2 of 2: the discriminator, {steps:,} steps, in {model_dir}", flush=True)
    yield override(config, {STEPS: steps}), model_dir, dataclasses.replace(
        pretrained.read(directory), source=f"{run_directory.FIRST_STAGE}, step {generator_steps:,}")


def train(run: Run) -> None:
    """Trains up to the last step, evaluates, and draws the curves.

    Losses are read from the devices only where an event needs them. Raises `UserError` if the
    directory is another run's, a loss isn't finite or a worker is lost, and `Interrupted` after a
    signal, when a checkpoint of the last step is saved.
    """
    config, strategy, num_steps = run.config, run.strategy, run.config.training.num_train_steps
    with contextlib.ExitStack() as stack:
        # What ends with the run: the lock and logs of its directory, signals, explained failures.
        directory, out = stack.enter_context(_directory_of_reports(run))
        stack.enter_context(failures.explained(run.require_records))
        stop = stack.enter_context(_stop_request(run))
        stack.enter_context(multi_worker.report_lost_worker(strategy))
        multi_worker.require_settings_of_chief(run.identity, strategy)

        # The newest checkpoint, or new weights; the events of the steps that remain.
        state, manager, new_parts = restore(run)
        stack.callback(manager.close)
        step = int(state.step.numpy())
        events = Events(first_step=step, num_steps=num_steps, runtime=config.runtime,
                        steps_per_loop=steps_per_loop(config.runtime, strategy))
        track = stack.enter_context(tracked(
            config.runtime.report_to if multi_worker.is_chief(strategy) else (),
            run.model_dir / run_directory.TRACKERS_FILE, config, {"records": str(run.records)}))
        reporter = Reporter(run, directory, events, out=out, track=track)
        reporter.on_start(state, new_parts)

        # Batches in an order that depends on the seed and the step alone; the compiled step
        # masks, computes losses and gradients, clips and updates (training/step.py).
        batches = distributed(strategy, lambda input_context: run.batches(
            events.first_step, num_steps, input_context))
        train_steps = compile_steps(
            TrainStep(config, run.objective, state, strategy, num_steps, run.finished_at,
                      run.stable_until), batches, in_loops=events.steps_per_loop > 1)
        evaluator = Evaluator(run, state.model) if run.examples("eval") else None
        agreement = Agreement(strategy)

        def keep_evaluating(num_batches: int) -> bool:
            reporter.on_evaluated(num_batches)
            return not agreement.received_signal(stop)

        metrics, received = StepMetrics(), None
        while True:
            # A run that was interrupted may have evaluated this step; only the chief's log knows.
            if evaluator is not None and events.is_due("evaluation", step) and not agreement.any(
                    [reporter.has_evaluation(step)])[0]:
                with state.averaged():
                    scores = evaluator.evaluate(keep_evaluating)
                if scores is None:
                    received = agreement.received_signal(stop)
                else:
                    reporter.on_eval(scores)
            if received or step == num_steps:
                break

            # One step, or on a TPU all steps up to the next event.
            count = events.steps_until_next(step)
            metrics.update(train_steps(count))
            step += count

            # Log, show samples and save where it is due; a signal ends the run after this step.
            received = agreement.received_signal(stop)
            if received or events.needs_results(step) or reporter.is_line_due():
                reporter.on_train(metrics.pop(step), step,
                                  complete=bool(received) or events.is_due("log", step))
            if received:
                break
            if events.is_due("samples", step) and evaluator is not None:
                with state.averaged():
                    reporter.on_samples(evaluator.samples(SHOWN_SAMPLES))
            if events.is_due("checkpoint", step):
                manager.save(step)
                reporter.on_checkpoint(step)

        if received:
            if manager.save(step):  # None if a signal came in an evaluation after a checkpoint.
                reporter.on_checkpoint(step)
            raise Interrupted(received, "" if out is not sys.stdout else (
                f"stopped by {received.name} at step {step:,} of {num_steps:,}; its checkpoint is "
                f"saved. To go on from there: {same_command()}"))


@contextlib.contextmanager
def _directory_of_reports(run: Run) -> Iterator[tuple[Path, TextIO]]:
    """Yields where logs and lines go: to the run's directory, or nowhere if another is the chief.

    Draws the curves at the end. Raises `UserError` if the directory is another run's, or another
    process trains in it.
    """
    # Other workers than the chief write to a directory that is removed.
    if not multi_worker.is_chief(run.strategy):
        with tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere:
            yield storage.path(scratch), nowhere
        return

    # The run's settings and vocabulary, before the first step.
    make_directory(run.model_dir)
    with run_directory.only_process(run.model_dir):
        identity = run.identity
        changed = run_directory.open_run_dir(
            run.model_dir, identity,
            ignored=[name for name in identity if name.startswith("initialization.")])
        if changed:
            print("note     settings of initialization apply at the first step only, so these have "
                  f"no effect on a run that continues: {'; '.join(changed)}", flush=True)
        run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
        yield run.model_dir, sys.stdout

        # The curves, unless a signal ended the loop.
        metrics, curves = run.model_dir / METRICS_FILE, run.model_dir / "loss_curves.png"
        if metrics.exists():
            draw_curves({run.model_dir.name: read_metrics(metrics)}, curves)
            print(f"curves   {curves}\nmodel    {run.model_dir / CHECKPOINTS}", flush=True)


def _stop_request(run: Run) -> StopRequest:
    if not multi_worker.has_several_workers(run.strategy):
        return StopRequest()
    seconds = run.config.runtime.grace_seconds  # Workers must not wait for each other without end.
    return StopRequest(grace_seconds=seconds, late=(
        f"the workers did not agree on a last step within --grace_seconds={seconds:g}, so this one "
        f"ends. To continue from the last checkpoint, run on every worker: {same_command()}"))


def restore(run: Run) -> tuple[TrainState, CheckpointManager, list[str]]:
    """Returns a run's initial or restored state, its manager, and names of new parts.

    New parts are those that the initial networks don't have. Raises `UserError` if all checkpoints
    are lost, or the newest doesn't fit.
    """
    # New networks and optimizer slots.
    config, saved = run.config, checkpoint_files.sealed_steps(run.model_dir / CHECKPOINTS)
    model = run.build_model(is_new=run.initial is None and not saved)
    state = TrainState(config, model, run.strategy)
    with run.strategy.scope():
        manager = CheckpointManager(
            tf.train.Checkpoint(state), run.model_dir / CHECKPOINTS,
            keep=config.runtime.keep_checkpoint_max, is_chief=multi_worker.is_chief(run.strategy))

        # The newest checkpoint replaces all of their values; a log of checkpoints shows that some
        # were lost. Without one, the initial networks' weights do, as far as they have the parts.
        restored, new_parts = manager.restore_or_initialize(), []
        metrics = run.model_dir / METRICS_FILE
        if restored is None and metrics.exists() and any(
                record["kind"] == CHECKPOINT for record in read_metrics(metrics)):
            raise checkpoint_files.lost_error(run.model_dir / CHECKPOINTS)
        if restored is None and run.initial is not None:
            weights, copies = init_from.copy_to_generator(
                run.initial.weights, model.trainable_variables)
            new_parts = assign_parts(
                model.trainable_variables, weights, run.initial.source) + copies

    # Workers begin alike: initial values depend on a CPU's rounding, and one may lack the files.
    multi_worker.copy_from_chief(state.variables, run.strategy)
    return state, manager, new_parts
