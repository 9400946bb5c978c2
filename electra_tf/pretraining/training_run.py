"""A pre-training run: from the newest checkpoint, or the start, to the last step."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import TextIO

import tensorflow as tf

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.data.pipeline import training_batches
from electra_tf.modeling.flops import peak_flops
from electra_tf.objectives.objective import count_parameters
from electra_tf.platform import storage
from electra_tf.platform.atomic_file import make_directory
from electra_tf.platform.command_line import same_command
from electra_tf.platform.signals import Interrupted, StopRequest
from electra_tf.platform.storage import Path
from electra_tf.pretraining.evaluation import evaluator_of
from electra_tf.pretraining.loop import Loop
from electra_tf.pretraining.reporter import Reporter
from electra_tf.pretraining.results import HeldOut
from electra_tf.pretraining.setup import Run
from electra_tf.pretraining.timetable import Timetable
from electra_tf.pretraining.trainer import Trainer, steps_per_loop
from electra_tf.reporting.collapse import CollapseWatch
from electra_tf.reporting.curves import draw_curves
from electra_tf.reporting.metrics_log import read_metrics, saved_steps
from electra_tf.training import failures
from electra_tf.training.assembly import build_state, build_step
from electra_tf.training.devices import device_name
from electra_tf.training.step import TrainState
from electra_tf.training.workers import (
    Agreement,
    has_several_workers,
    is_chief,
    loss_of_a_worker_named,
)


@failures.explained()
def train(run: Run) -> None:
    """Trains up to the last step, evaluates, and draws the curves.

    Raises:
        UserError: the directory belongs to another run or can't be written; a loss isn't finite;
            another worker is lost.
        Interrupted: a signal stopped the run; a checkpoint of its last step is saved.
    """
    if is_chief(run.strategy):
        make_directory(run.model_dir)
        with run_directory.only_process(run.model_dir):
            changed = run_directory.claim(
                run.model_dir, run.identity, of_the_start="initialization")
            if changed:
                print("note     initial values matter only at the start, which this run is past: "
                      f"{'; '.join(changed)}", flush=True)
            run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
            _train(run, run.model_dir, sys.stdout)
            _draw(run.model_dir)
    else:
        with (tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere):
            _train(run, storage.path(scratch), nowhere)


def _train(run: Run, report_dir: Path, out: TextIO) -> None:
    config = run.config
    with (_stop_request(run) as request, loss_of_a_worker_named(run.strategy),
          contextlib.ExitStack() as left_over):
        state, manager, new_parts = restored_state(run)
        left_over.callback(manager.close)
        table = Timetable(first_step=int(state.step.numpy()), runtime=config.runtime,
                          num_steps=config.training.num_train_steps,
                          steps_per_loop=steps_per_loop(config.runtime, run.strategy))
        _print_header(run, state, table.first_step, new_parts, out)
        reporter = Reporter(
            report_dir, table, peak_fraction=_peak_fraction(run), out=out,
            watch=CollapseWatch(config.optimizer.warmup(table.num_steps)).take,
            tokens_per_step=config.training.train_batch_size * run.length)
        evaluator = evaluator_of(run, state.model)
        stopped_by = Loop(
            timetable=table, trainer=_trainer(run, state, table), manager=manager,
            reporter=reporter, request=request, workers=Agreement(run.strategy),
            held_out=None if evaluator is None else HeldOut(run, evaluator, out)).run()
    if stopped_by:
        raise Interrupted(stopped_by, "" if out is not sys.stdout else (
            f"stopped by {stopped_by.name} at step {int(state.step.numpy()):,} of "
            f"{table.num_steps:,}; its checkpoint is saved. To go on from there: "
            f"{same_command()}"))


def _stop_request(run: Run) -> StopRequest:
    """Returns what notes signals; workers that wait for each other mustn't wait for ever."""
    if not has_several_workers(run.strategy):
        return StopRequest()
    seconds = run.config.runtime.grace_seconds
    return StopRequest(grace_seconds=seconds, late=(
        f"no step that all workers agree on within --grace_seconds={seconds:g}: this worker ends. "
        f"To go on from the last checkpoint, on every worker: {same_command()}"))


def restored_state(run: Run) -> tuple[TrainState, CheckpointManager, list[str]]:
    """Returns a run's state, of its newest checkpoint or as it begins, and what saves it.

    Returns also which parts of the networks another run, if one begins this, didn't have.

    Raises:
        UserError: every checkpoint is lost, or the newest doesn't fit.
    """
    config, runtime = run.config, run.config.runtime
    model = run.build_model()
    state = build_state(config, model, run.strategy)
    with run.strategy.scope():
        checkpoint = tf.train.Checkpoint(
            model=model, optimizer=state.optimizer, loss_scale=state.loss_scale, step=state.step)
        manager = CheckpointManager(
            checkpoint, run.model_dir / run_directory.CHECKPOINTS,
            interval=runtime.save_checkpoints_steps, keep=runtime.keep_checkpoint_max,
            is_chief=is_chief(run.strategy))
        restored, new_parts = manager.restore_or_initialize(), []
        if restored is None and saved_steps(run.model_dir / run_directory.METRICS_FILE):
            raise checkpoints.lost(run.model_dir / run_directory.CHECKPOINTS)
        if restored is None and run.initial is not None:
            new_parts = assign_parts(
                model.trainable_variables, run.initial.weights, run.initial.source)
    return state, manager, new_parts


def _trainer(run: Run, state: TrainState, table: Timetable) -> Trainer:
    config = run.config
    step = build_step(config, run.objective, state, run.strategy, table.num_steps, run.finished_at)
    batches = run.strategy.distribute_datasets_from_function(
        lambda context: training_batches(
            run.records, length=run.length, pad_id=run.vocabulary.pad_id,
            seed=config.training.seed, window_examples=config.data.shuffle_window,
            global_batch_size=config.training.train_batch_size, first_step=table.first_step,
            last_step=table.num_steps, context=context))
    return Trainer(run.strategy, step, batches, in_loops=table.steps_per_loop > 1)


def _peak_fraction(run: Run) -> Callable[[float], float | None]:
    """Returns the map from tokens per second to the used fraction of the devices' peak."""
    flops = run.objective.flops_per_token(run.length)
    peak = peak_flops(device_name(run.strategy), run.config.training.precision.value)
    if flops is None or peak is None:
        return lambda rate: None
    return lambda rate: rate * flops / (peak * run.strategy.num_replicas_in_sync)


def _print_header(run: Run, state: TrainState, first_step: int, new_parts: Sequence[str],
                  out: TextIO) -> None:
    training, about = run.config.training, run.objective.describe(state.model)
    lines = [
        f"model    {count_parameters(state.model):,} parameters" + (f": {about}" if about else ""),
        _about_records(run),
        *([] if first_step else [
            f"begins   with {'new weights' if run.initial is None else run.initial.source}"
            + (f"; new: {', '.join(new_parts)}" if new_parts else "")]),
        f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
        f"{training.precision.value}",
        f"steps    {first_step:,} done, {training.num_train_steps - first_step:,} to go"
        f"{'' if first_step < training.num_train_steps else ': this run is finished'}",
    ]
    if run.finished_at:
        lines.append(f"extended at step {', '.join(f'{step:,}' for step in run.finished_at)}: the "
                     "learning rate warms up again to its peak and decays")
    print("\n".join(lines), file=out, flush=True)


def _about_records(run: Run) -> str:
    batch, places, rows = run.config.training.train_batch_size, run.places, run.rows("train")
    cut = (f", {places.rows} out of each of {places.built} (which leaves out {places.left_over})"
           if places.rows > 1 else "")
    return (f"records  {rows:,} examples of {run.length} tokens, {run.rows('eval'):,} held out"
            f"{cut}; {rows / batch:,.0f} steps of {batch} an epoch")


def _draw(model_dir: Path) -> None:
    metrics = model_dir / run_directory.METRICS_FILE
    if metrics.exists():
        curves = model_dir / "loss_curves.png"
        draw_curves({model_dir.name: read_metrics(metrics)}, curves)
        print(f"curves   {curves}\nmodel    {model_dir / 'checkpoints'}", flush=True)
