"""A pre-training run: from the newest checkpoint, or the start, to the last step."""

import contextlib
import dataclasses
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import TextIO

import tensorflow as tf

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.data.pipeline import training_batches
from electra_tf.modeling import weight_table
from electra_tf.platform import storage
from electra_tf.platform.atomic_file import make_directory
from electra_tf.platform.command_line import same_command
from electra_tf.platform.signals import STOPPING, Interrupted, StopRequest
from electra_tf.platform.storage import Path
from electra_tf.pretraining.evaluation import Evaluator, evaluator_of
from electra_tf.pretraining.reporter import Reporter
from electra_tf.pretraining.results import SHOWN_SAMPLES
from electra_tf.pretraining.setup import Run
from electra_tf.pretraining.trainer import Timetable, Trainer, steps_per_loop
from electra_tf.reporting.curves import draw_curves
from electra_tf.reporting.metrics_log import CHECKPOINT, read_metrics
from electra_tf.training import failures, workers
from electra_tf.training.assembly import build_state, build_step
from electra_tf.training.devices import device_name
from electra_tf.training.step import TrainState


@failures.explained()
def train(run: Run) -> None:
    """Trains up to the last step, evaluates, and draws the curves.

    Raises:
        UserError: the directory is another run's, a loss isn't finite, or a worker is lost.
        Interrupted: a signal stopped the run; a checkpoint of its last step is saved.
    """
    if not workers.is_chief(run.strategy):
        with (tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as nowhere):
            _train(run, storage.path(scratch), nowhere)
        return
    make_directory(run.model_dir)
    with run_directory.only_process(run.model_dir):
        changed = run_directory.claim(run.model_dir, run.identity, of_the_start="initialization")
        if changed:
            print("note     initial values matter only at the start, which this run is past: "
                  f"{'; '.join(changed)}", flush=True)
        run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
        _train(run, run.model_dir, sys.stdout)
        metrics, curves = (run.model_dir / name for name in (
            run_directory.METRICS_FILE, "loss_curves.png"))
        if metrics.exists():
            draw_curves({run.model_dir.name: read_metrics(metrics)}, curves)
            print(f"curves   {curves}\nmodel    {run.model_dir / 'checkpoints'}", flush=True)


def _train(run: Run, report_dir: Path, out: TextIO) -> None:
    config = run.config
    with (_stop_request(run) as request, workers.loss_of_a_worker_named(run.strategy),
          contextlib.ExitStack() as left_over):
        state, manager, new_parts = restored_state(run)
        left_over.callback(manager.close)
        table = Timetable(first_step=int(state.step.numpy()), runtime=config.runtime,
                          num_steps=config.training.num_train_steps,
                          steps_per_loop=steps_per_loop(config.runtime, run.strategy))
        print("\n".join(_header(run, state, table.first_step, new_parts)), file=out, flush=True)
        reporter = Reporter(run, report_dir, table, out=out)
        stopped_by = Loop(
            timetable=table, trainer=_trainer(run, state, table), manager=manager,
            reporter=reporter, evaluator=evaluator_of(run, state.model), request=request,
            workers=workers.Agreement(run.strategy)).run()
    if stopped_by:
        raise Interrupted(stopped_by, "" if out is not sys.stdout else (
            f"stopped by {stopped_by.name} at step {int(state.step.numpy()):,} of "
            f"{table.num_steps:,}; its checkpoint is saved. To go on from there: "
            f"{same_command()}"))


def _stop_request(run: Run) -> StopRequest:
    if not workers.has_several_workers(run.strategy):
        return StopRequest()
    seconds = run.config.runtime.grace_seconds  # Workers mustn't wait for each other for ever.
    return StopRequest(grace_seconds=seconds, late=(
        f"no step that all workers agree on within --grace_seconds={seconds:g}: this worker ends. "
        f"To go on from the last checkpoint, on every worker: {same_command()}"))


def restored_state(run: Run) -> tuple[TrainState, CheckpointManager, list[str]]:
    """Returns a run's state, of its newest checkpoint or as it begins, and what saves it.

    Returns also which parts of the networks the initial networks, if there are any, don't have. If
    every checkpoint is lost, or the newest doesn't fit, that is a `UserError`.
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
            is_chief=workers.is_chief(run.strategy))
        restored, new_parts = manager.restore_or_initialize(), []
        metrics = run.model_dir / run_directory.METRICS_FILE
        if restored is None and metrics.exists() and any(
                record["kind"] == CHECKPOINT for record in read_metrics(metrics)):
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loop:
    """The loop from the restored step to the last step or a signal, and the parts it calls."""

    timetable: Timetable
    trainer: Trainer
    manager: CheckpointManager
    reporter: Reporter
    evaluator: Evaluator | None
    """None if nothing was held out."""
    request: StopRequest
    workers: workers.Agreement

    def run(self) -> signal.Signals | None:
        """Trains; returns the signal that ended the run early, after a checkpoint, or None.

        Losses are read only where needed, so that the devices don't wait.
        """
        table, step = self.timetable, self.timetable.first_step
        stopped = self._evaluate(step) if table.evaluates(step) else None
        while step < table.num_steps and not stopped:
            count = table.steps_in_one_go(step)
            self.trainer.run(count)
            step += count
            stopped = self._stopped()
            if stopped or table.reads(step) or self.reporter.line_is_due():
                self.reporter.on_train(self.trainer.totals(), step,
                                       complete=bool(stopped) or table.records(step))
            if table.samples(step) and not stopped and self.evaluator is not None:
                self.reporter.on_samples(self.evaluator.samples(SHOWN_SAMPLES))
            if table.saves(step) or stopped:
                self.manager.save(step, check_interval=False)
                self.reporter.on_checkpoint(step)
            if table.evaluates(step) and not stopped:
                stopped = self._evaluate(step)
        return stopped

    def _stopped(self) -> signal.Signals | None:
        """Returns the signal that any worker received, the same one on all workers."""
        received = self.workers.any([self.request.number == number for number in STOPPING])
        return max((number for number, came in zip(STOPPING, received, strict=True) if came),
                   default=None)

    def _evaluate(self, step: int) -> signal.Signals | None:
        """Evaluates, unless that was done before the run was interrupted; returns as `run`."""
        # Only the chief has the log.
        if self.evaluator is None or self.workers.any([self.reporter.has_evaluation(step)])[0]:
            return None
        stopped = None

        def go_on(batches: int) -> bool:
            nonlocal stopped
            self.reporter.on_evaluated(batches)
            stopped = self._stopped()
            return not stopped

        scores = self.evaluator.evaluate(go_on)
        if scores is not None:
            self.reporter.on_eval(scores)
        return stopped


def _header(run: Run, state: TrainState, first_step: int,
            new_parts: Sequence[str]) -> list[str]:
    training = run.config.training
    parameters = sum(one.shape.num_elements() for one in state.model.trainable_variables)
    parts = ", ".join(f"{network.name} {weight_table.size(network.weights):,}"
                      for network in run.objective.networks())
    lines = [f"model    {parameters:,} parameters"
             + (f": {parts}, each with what it shares" if parts else ""), _about_records(run)]
    if not first_step:
        lines.append(f"begins   with {'new weights' if run.initial is None else run.initial.source}"
                     + (f"; new: {', '.join(new_parts)}" if new_parts else ""))
    lines += [f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
              f"{training.precision.value}",
              f"steps    {first_step:,} done, {training.num_train_steps - first_step:,} to go"
              f"{'' if first_step < training.num_train_steps else ': this run is finished'}"]
    if run.finished_at:
        lines.append(f"extended at step {', '.join(f'{step:,}' for step in run.finished_at)}: the "
                     "learning rate warms up again to its peak and decays")
    return lines


def _about_records(run: Run) -> str:
    batch, places, rows = run.config.training.train_batch_size, run.places, run.rows("train")
    cut = (f", {places.rows} out of each of {places.built} (which leaves out {places.left_over})"
           if places.rows > 1 else "")
    return (f"records  {rows:,} examples of {run.length} tokens, {run.rows('eval'):,} held out"
            f"{cut}; {rows / batch:,.0f} steps of {batch} an epoch")
