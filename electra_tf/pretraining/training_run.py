"""Trains from the newest checkpoint, or from new weights, to the last step."""

import contextlib
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import TextIO

import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files, run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.run_directory import CHECKPOINTS, METRICS_FILE
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.data.pipeline import training_batches
from electra_tf.modeling import weight_table
from electra_tf.platform import storage
from electra_tf.platform.atomic_file import make_directory
from electra_tf.platform.command_line import same_command
from electra_tf.platform.signals import STOPPING, Interrupted, StopRequest
from electra_tf.platform.storage import Path
from electra_tf.pretraining.evaluation import Evaluator
from electra_tf.pretraining.reporter import Reporter
from electra_tf.pretraining.results import SHOWN_SAMPLES
from electra_tf.pretraining.setup import Run
from electra_tf.pretraining.trainer import Timetable, Trainer, steps_per_loop
from electra_tf.reporting.curves import draw_curves
from electra_tf.reporting.metrics_log import CHECKPOINT, read_metrics
from electra_tf.training import failures, workers
from electra_tf.training.assembly import build_state, build_step
from electra_tf.training.devices import device_name, distributed
from electra_tf.training.step import TrainState


def train(run: Run) -> None:
    """Trains up to the last step, evaluates, and draws the curves.

    Raises `UserError` if the directory is another run's, a loss isn't finite or a worker is lost,
    and `Interrupted` after a signal, when a checkpoint of the last step is saved.
    """
    if not workers.is_chief(run.strategy):
        with (tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere):
            _train(run, storage.path(scratch), nowhere)
        return
    make_directory(run.model_dir)
    with run_directory.only_process(run.model_dir):
        changed = run_directory.claim(run.model_dir, run.identity, initial_section="initialization")
        if changed:
            print("note     initial values matter only at the start, which this run is past: "
                  f"{'; '.join(changed)}", flush=True)
        run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
        _train(run, run.model_dir, sys.stdout)
        metrics, curves = run.model_dir / METRICS_FILE, run.model_dir / "loss_curves.png"
        if metrics.exists():
            draw_curves({run.model_dir.name: read_metrics(metrics)}, curves)
            print(f"curves   {curves}\nmodel    {run.model_dir / CHECKPOINTS}", flush=True)


def _train(run: Run, report_dir: Path, out: TextIO) -> None:
    config = run.config
    with (failures.explained(run.require_records), _stop_request(run) as request,
          workers.loss_of_a_worker_named(run.strategy), contextlib.ExitStack() as left_over):
        state, manager, new_parts = restored_state(run)
        left_over.callback(manager.close)
        table = Timetable(first_step=int(state.step.numpy()), runtime=config.runtime,
                          num_steps=config.training.num_train_steps,
                          steps_per_loop=steps_per_loop(config.runtime, run.strategy))
        print("\n".join(_header(run, state, table.first_step, new_parts)), file=out, flush=True)
        stopped_by = run_loop(
            table, _trainer(run, state, table), manager, Reporter(run, report_dir, table, out=out),
            Evaluator(run, state.model) if run.examples("eval") else None, request,
            workers.Agreement(run.strategy))
    if stopped_by:
        raise Interrupted(stopped_by, "" if out is not sys.stdout else (
            f"stopped by {stopped_by.name} at step {int(state.step.numpy()):,} of "
            f"{table.num_steps:,}; its checkpoint is saved. To go on from there: "
            f"{same_command()}"))


def _stop_request(run: Run) -> StopRequest:
    if not workers.has_several_workers(run.strategy):
        return StopRequest()
    seconds = run.config.runtime.grace_seconds  # Workers must not wait for each other without end.
    return StopRequest(grace_seconds=seconds, late=(
        f"no step that all workers agree on within --grace_seconds={seconds:g}: this worker ends. "
        f"To go on from the last checkpoint, on every worker: {same_command()}"))


def restored_state(run: Run) -> tuple[TrainState, CheckpointManager, list[str]]:
    """Returns a run's initial or restored state, its manager, and names of new parts.

    New parts are those that the initial networks don't have. Raises `UserError` if all checkpoints
    are lost, or the newest doesn't fit.
    """
    config, model = run.config, run.build_model()
    state = build_state(config, model, run.strategy)
    with run.strategy.scope():
        checkpoint = tf.train.Checkpoint(
            model=model, optimizer=state.optimizer, loss_scale=state.loss_scale, step=state.step)
        manager = CheckpointManager(
            checkpoint, run.model_dir / CHECKPOINTS, keep=config.runtime.keep_checkpoint_max,
            is_chief=workers.is_chief(run.strategy))
        restored, new_parts = manager.restore_or_initialize(), []
        metrics = run.model_dir / METRICS_FILE
        if restored is None and metrics.exists() and any(
                record["kind"] == CHECKPOINT for record in read_metrics(metrics)):
            raise checkpoint_files.lost_error(run.model_dir / CHECKPOINTS)
        if restored is None and run.initial is not None:
            new_parts = assign_parts(
                model.trainable_variables, run.initial.weights, run.initial.source)
    return state, manager, new_parts


def _trainer(run: Run, state: TrainState, table: Timetable) -> Trainer:
    config = run.config
    step = build_step(config, run.objective, state, run.strategy, table.num_steps, run.finished_at)
    batches = distributed(
        run.strategy, lambda context: training_batches(
            run.records, pad_id=run.vocabulary.pad_id,
            seed=config.training.seed, buffer_examples=config.data.shuffle_buffer,
            global_batch_size=config.training.train_batch_size, first_step=table.first_step,
            last_step=table.num_steps, context=context))
    return Trainer(run.strategy, step, batches, in_loops=table.steps_per_loop > 1)


def run_loop(table: Timetable, trainer: Trainer, manager: CheckpointManager, reporter: Reporter,
             evaluator: Evaluator | None, request: StopRequest, agreement: workers.Agreement
             ) -> signal.Signals | None:
    """Trains from the restored step to the last one; losses are read only where needed.

    Returns the signal that ended the run early, after a checkpoint, or None. `evaluator` is None
    if nothing was held out.
    """
    def received() -> signal.Signals | None:
        """Returns the signal that any worker received, the same one on all workers."""
        came = agreement.any([request.number == number for number in STOPPING])
        return max(itertools.compress(STOPPING, came), default=None)

    def evaluate() -> signal.Signals | None:
        """Evaluates, unless that was done before the run was interrupted; returns as `run_loop`."""
        # Only the chief has the log.
        if evaluator is None or agreement.any([reporter.has_evaluation(step)])[0]:
            return None
        stopped = None

        def go_on(batches: int) -> bool:
            nonlocal stopped
            reporter.on_evaluated(batches)
            stopped = received()
            return not stopped

        scores = evaluator.evaluate(go_on)
        if scores is not None:
            reporter.on_eval(scores)
        return stopped

    step = table.first_step
    stopped = evaluate() if table.evaluates(step) else None
    while step < table.num_steps and not stopped:
        count = table.steps_in_one_go(step)
        trainer.run(count)
        step += count
        stopped = received()
        if stopped or table.reads(step) or reporter.line_is_due():
            reporter.on_train(trainer.totals(), step, complete=bool(stopped) or table.records(step))
        if table.samples(step) and not stopped and evaluator is not None:
            reporter.on_samples(evaluator.samples(SHOWN_SAMPLES))
        if table.saves(step) or stopped:
            manager.save(step)
            reporter.on_checkpoint(step)
        if table.evaluates(step) and not stopped:
            stopped = evaluate()
    return stopped


def _header(run: Run, state: TrainState, first_step: int,
            new_parts: Sequence[str]) -> list[str]:
    training, examples = run.config.training, run.examples("train")
    parameters = sum(one.shape.num_elements() for one in state.model.trainable_variables)
    parts = ", ".join(f"{network.name} {weight_table.size(network.weights):,}"
                      for network in run.objective.networks())
    lines = [f"model    {parameters:,} parameters"
             + (f": {parts}, each with what it shares" if parts else ""),
             f"records  {examples:,} examples of {run.length} tokens, "
             f"{run.examples('eval'):,} held out; {examples / training.train_batch_size:,.0f} "
             f"steps of {training.train_batch_size} an epoch"]
    if not first_step:
        lines.append(f"begins   with {'new weights' if run.initial is None else run.initial.source}"
                     + (f"; new: {', '.join([*new_parts, *run.new_rows])}"
                        if new_parts or run.new_rows else ""))
    lines += [f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
              f"{training.precision.value}",
              f"steps    {first_step:,} done, {training.num_train_steps - first_step:,} to go"
              f"{'' if first_step < training.num_train_steps else ': this run is finished'}"]
    if run.finished_at:
        lines.append(f"extended at step {', '.join(f'{step:,}' for step in run.finished_at)}: the "
                     "learning rate warms up again to its peak and decays")
    return lines
