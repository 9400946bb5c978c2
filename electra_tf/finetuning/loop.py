"""The loop of fine-tuning: trials, their epochs and batches; the best trial's model is kept."""

import contextlib
import dataclasses
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files, run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.weights import checkpoint_in_use
from electra_tf.config.finetuning import SCRATCH, FinetuningConfig
from electra_tf.config.model import EncoderConfig
from electra_tf.config.overrides import override
from electra_tf.core.command_line import same_command
from electra_tf.core.errors import UserError
from electra_tf.core.signals import Interrupted
from electra_tf.core.storage import Path
from electra_tf.data.buckets import Row, RowBatch, make_batch, plan_epoch
from electra_tf.finetuning import distillation, reporter, trials
from electra_tf.finetuning.outputs import write_outputs
from electra_tf.finetuning.predict import CompiledByShape, Predictor
from electra_tf.finetuning.reporter import TrialProgress
from electra_tf.finetuning.results import Baseline, Epoch, Results, Trial, main_score, shown_changes
from electra_tf.finetuning.run import FinetuningRun, prepare_run, weights_digest
from electra_tf.finetuning.trials import TrialData, TrialPlan
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import Means
from electra_tf.reporting.trackers import Log, tracked
from electra_tf.tasks.task import Task
from electra_tf.text.normalization import TextSettings
from electra_tf.training import devices, failures
from electra_tf.training.step import CHECKED, TrainState, TrainStep

_NOT_OF_THE_FUNCTION = (
    "hidden_dropout", "attention_dropout", "initializer_range", "max_position_embeddings")
"""Settings of an encoder that may differ from those of its pre-training."""


def prepare(config: FinetuningConfig, task: Task, text: TextSettings, model_dir: Path,
            grid: Mapping[str, tuple[Any, ...]] | None = None,
            teacher: Path | None = None) -> FinetuningRun:
    """Returns a run that is ready to train; `UserError`, before it writes, for what doesn't fit."""
    run = distillation.with_teacher(prepare_run(config, task.spec, text, model_dir, grid), teacher)
    if task.unlabelled and teacher is None:
        raise UserError("--unlabelled needs --teacher, the fine-tuned model that labels texts.")
    for combination in run.combinations:
        run.with_settings(combination).check_training()
    return run


@failures.explained()
def train(run: FinetuningRun, task: Task, initial: Checkpoint | None) -> Results:
    """Runs the remaining trials and keeps the best one's model and predictions.

    A trial trains `initial`, with a new head unless it has this task's, or from scratch if it is
    None, and scores dev after every epoch. `Interrupted` keeps finished trials. `UserError` for
    another run's directory, missing weights, or a loss that isn't finite.
    """
    # The data of the first trial, and all that affects the results.
    notes = [*run.check_training(), *task.notes, *trials.fold_notes(run, task)]
    if initial is not None:
        notes += _compare_encoders(run.config.model, initial)
    data = TrialData.encode(run, task, trials.ALL_FOLDS if run.config.training.num_folds else None)
    identity, num_planned = _identity(run, task, initial), len(trials.planned_trials(run))
    with _locked_directory(run, identity, initial):
        run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
        results = _earlier_results(run, task, initial)
        reporter.print_header(run, task, initial, data, len(results.trials), notes)

        # Seeds, folds and combinations of settings, one trial after the other.
        while (plan := trials.next_plan(run, results)) is not None:
            # The settings, rows and class weights of the trial.
            print(end=plan.line(len(results.trials) + 1, num_planned), flush=True)
            trial_run = run.with_settings(plan.changes)
            data = data.for_trial(trial_run, task, plan.fold).with_teacher(trial_run)
            trial_run = trial_run.with_class_weights(data.examples)

            # Its training, and a checkpoint if it is the best so far.
            with devices.temporary_variables(), tracked(
                    run.config.runtime.report_to, run.model_dir / run_directory.TRACKERS_FILE,
                    override(trial_run.config, {"training.seed": plan.seed}),
                    {"task": results.task, "initial": results.initial}, plan.name) as track:
                model = trial_run.build_model(plan.seed, initial)
                trial = train_trial(trial_run, model, data, results.metrics, plan, track)
                results = dataclasses.replace(results, trials=(*results.trials, trial))
                if results.best is trial:
                    step = tf.Variable(trial.epochs[trial.kept_epoch - 1].step, dtype=tf.int64,
                                       name="step")
                    CheckpointManager(
                        tf.train.Checkpoint(model=model, step=step),
                        run.model_dir / run_directory.CHECKPOINTS, keep=0).save(results.best_number)

            # The saved results name the best trial's checkpoint, so the others are obsolete now.
            results.save(run.model_dir)
            _remove_other_checkpoints(run, results)
            if run.grid:  # The saved settings are those of the kept model.
                run_directory.open_run_dir(run.model_dir, {**identity, **results.best.changes},
                                           replaced=tuple(run.grid))

        # Predictions and mistakes of the kept model.
        kept_run = run.with_settings(results.best.changes).in_float32
        dev = data.for_trial(kept_run, task, results.best.fold).dev
        mistakes = write_outputs(kept_run, task, dev, results)
    print(f"\n{results.table()}{mistakes}\n"
          f"results  {run.model_dir / run_directory.RESULTS_FILE}\n"
          f"model    {run.model_dir / run_directory.CHECKPOINTS}", flush=True)
    return results


def _compare_encoders(model: EncoderConfig, initial: Checkpoint) -> list[str]:
    """Returns notes; `UserError` for settings with which the weights compute something else."""
    for field in dataclasses.fields(EncoderConfig):
        trained, value = getattr(initial.config, field.name), getattr(model, field.name)
        if trained != value and field.name not in _NOT_OF_THE_FUNCTION:
            raise UserError(f"model.{field.name} is {trained} in {initial.source}, and its weights "
                            f"need that; leave --set model.{field.name}={value} out.")
    positions = initial.config.max_position_embeddings
    return ([] if model.max_position_embeddings <= positions else
            [f"rows may be longer than the {positions} tokens of pre-training"])


def train_trial(run: FinetuningRun, model: TaskNetwork, data: TrialData,
                metrics: Sequence[str], plan: TrialPlan, track: Log) -> Trial:
    """Trains a model and scores it after every epoch; it ends with the kept epoch's weights."""
    training, num_steps = run.config.training, run.config.num_train_steps(len(data.rows))
    train_step = compile_train_step(run, model, num_steps=num_steps, seed=plan.seed)
    progress, predictor = TrialProgress(num_steps, run.config), Predictor(run.in_float32, model)
    epochs, history, kept, stopped_early = [], [], None, False
    while progress.step < num_steps and not stopped_early and len(epochs) != plan.max_epochs:
        # One pass over the rows, then the scores on every split of dev.
        losses, mean_loss = _train_epoch(
            run, train_step, data.rows, progress, track, seed=plan.seed, epoch=len(epochs) + 1)
        history += losses
        scores = {name: dict(split.score(predictor.predict(split.rows), None).scores)
                  for name, split in data.dev.items()}
        progress.count_other_work("evaluation")
        epochs.append(Epoch(epoch=len(epochs) + 1, step=progress.step, loss=mean_loss,
                            scores=scores))
        track(progress.step, {f"{split}/{metric}": value for split, values in scores.items()
                              for metric, value in values.items()})
        print(progress.epoch_line(epochs[-1], metrics), flush=True)

        # The weights of the last epoch are kept, or those with the best score; it may stop early.
        if not (scores and (training.keep_best or training.early_stopping)):
            kept = epochs[-1]
            continue
        best = -math.inf if kept is None else main_score(kept.scores, metrics[0])
        if best == -math.inf or main_score(scores, metrics[0]) > best:  # Also if none is defined.
            kept, kept_weights = epochs[-1], model.get_weights()
        stopped_early = 0 < training.early_stopping <= epochs[-1].epoch - kept.epoch
        if stopped_early:
            print(f"  stopped after epoch {epochs[-1].epoch} of {training.num_train_epochs:g}: no "
                  f"better {metrics[0]} since epoch {kept.epoch}, which is kept", flush=True)
    if kept is not epochs[-1]:
        model.set_weights(kept_weights)
    return Trial(
        seed=plan.seed, losses=tuple(history), epochs=tuple(epochs), kept_epoch=kept.epoch,
        seconds=progress.elapsed, examples_per_second=progress.examples_per_second,
        changes=plan.changes, fold=plan.fold, stopped_early=stopped_early)


def _train_epoch(run: FinetuningRun, train_step: CompiledByShape, rows: Sequence[Row],
                 progress: TrialProgress, track: Log, *, seed: int, epoch: int
                 ) -> tuple[list[tuple[int, float]], float]:
    """Trains on all rows; returns the steps and mean losses of intervals, and the epoch's mean."""
    # The epoch's batches, which hold rows of similar length.
    training = run.config.training
    batch_size = training.train_batch_size
    padded_lengths = run.padded_lengths(rows, training.num_train_epochs)
    plan = plan_epoch([row.ids.size for row in rows], batch_size, seed=seed, epoch=epoch - 1)
    plan = plan[:progress.num_steps - progress.step]
    next_step, last_step = progress.step + 1, progress.step + len(plan)

    results, history, loss_sum = [], [], 0.0
    for step, indices in enumerate(plan, start=next_step):
        # One batch, padded to one of a few lengths, and one step on it.
        batch = make_batch([rows[index] for index in indices], batch_size, padded_lengths,
                           run.text.vocabulary.pad_id)
        results.append(train_step(batch.ids.shape, run.distributed(batch)))

        # The mean loss of an interval: a line, the log and the trial's curve.
        ends_interval = step == last_step or step % progress.log_every == 0
        if not (ends_interval or progress.is_line_due()):
            continue  # The devices compute on; results are read only for a line.
        for name in CHECKED:
            if not np.isfinite([result[name].total.numpy() for result in results]).all():
                raise UserError(f"{name} is not finite in epoch {epoch}. Try a lower "
                                "--learning_rate, or --precision=float32, in a new --model_dir.")
        loss = float(np.mean([
            result["loss"].total.numpy() / result["loss"].weight.numpy() for result in results]))
        progress.trained(step, epoch=epoch)
        if step < last_step:
            print(progress.line(f"loss {loss:.4f}"), flush=True)
        if ends_interval:
            history.append((step, loss))
            track(step, {"train/loss": loss})
            loss_sum += len(results) * loss
            results = []
    return history, loss_sum / len(plan)


def compile_train_step(run: FinetuningRun, model: TaskNetwork, *, num_steps: int,
                       seed: int) -> CompiledByShape:
    """Returns a training step on all replicas; it takes the shape of ids, and a batch.

    `seed` determines dropout, `num_steps` the learning rate.
    """
    config, objective = override(run.config, {"training.seed": seed}), run.objective
    if run.teacher is not None:
        objective = distillation.DistillationObjective(objective, config.training)
    state = TrainState(config, model, run.strategy, rate_factors(
        (variable.name for variable in model.trainable_variables),
        num_layers=config.model.num_layers, decay=config.optimizer.layerwise_decay,
        skip_first=config.optimizer.layerwise_decay_skips_one))
    train_step = TrainStep(config, objective, state, run.strategy, num_steps)

    def run_step(batch: RowBatch) -> Means:  # TPUs need a function with a name.
        return train_step(batch)

    return CompiledByShape(run_step)


def rate_factors(paths: Iterable[str], *, num_layers: int, decay: float,
                 skip_first: bool = False) -> list[float]:
    """Returns the factor of each weight's learning rate: decay ** depth (ELECTRA, appendix B).

    Weights outside the encoder have depth 0, the last of `num_layers` layers 1, the first
    `num_layers`, and the embeddings one more. `skip_first` adds 1 to all depths but the head's, as
    in Google's code, which measured the published scores (its issues 51 and 64).
    `paths` are full names such as "electra/encoder/layer_0/output/dense/bias".
    """
    factors = []
    for path in paths:
        depth = 0
        if path.startswith("electra/"):
            layer = re.search(r"/encoder/layer_(\d+)/", path)
            depth = num_layers - int(layer.group(1)) if layer else num_layers + 1
            depth += skip_first
        factors.append(decay ** depth)
    return factors


def _identity(run: FinetuningRun, task: Task, initial: Checkpoint | None) -> dict[str, Any]:
    """Returns all that affects the result of a run's trials."""
    digest = hashlib.sha256()
    unlabelled = [("unlabelled", task.unlabelled)] if task.unlabelled else []
    for name, examples in (("train", task.train), *task.dev.items(), *unlabelled):
        digest.update(name.encode())
        for example in examples:
            digest.update(repr(example).encode())
    facts = run.spec.to_dict() | run.text.to_dict() | {
        "initial": SCRATCH if initial is None else initial.source, "data": digest.hexdigest()} | (
            {"initial_digest": weights_digest(initial)} if initial else {}) | (
            distillation.teacher_identity(run.teacher) if run.teacher else {})
    if run.grid:
        facts["grid"] = "; ".join(map(shown_changes, run.combinations))
    identity = run_directory.identity(run.config, facts)
    del identity["training.num_trials"]  # More trials may follow later.
    return identity


@contextlib.contextmanager
def _locked_directory(run: FinetuningRun, identity: Mapping[str, Any],
                      initial: Checkpoint | None) -> Iterator[None]:
    """Locks the run's directory for this process; `Interrupted` says how many trials are kept."""
    if initial is not None:
        run.build_model(0, initial)  # Refuses weights of another shape before it writes a file.
    if run_directory.has_run(run.model_dir) and (results := Results.load(run.model_dir)):
        identity = {**identity, **results.best.changes}
    run_directory.open_run_dir(run.model_dir, identity, replaced=tuple(run.grid))
    with run_directory.only_process(run.model_dir):
        try:
            yield
        except Interrupted as interrupted:
            results = Results.load(run.model_dir)
            raise Interrupted(interrupted.number, (
                f"stopped in --task={run.spec.name}: {len(results.trials) if results else 0} of "
                f"{len(trials.planned_trials(run))} trials finished and kept. To go on from there: "
                f"{same_command()}")) from None


def _earlier_results(run: FinetuningRun, task: Task, initial: Checkpoint | None) -> Results:
    """Returns the results of the finished trials; without any, those of a constant prediction."""
    results = Results.load(run.model_dir)
    if results is not None:
        checkpoint_in_use(run.model_dir)  # Refuses a missing one before it runs further trials.
        _remove_other_checkpoints(run, results)  # A killed process leaves others.
        return results
    constants = {name: run.kind.baseline(run.spec, task.train, examples)
                 for name, examples in (task.dev or {"dev": task.train}).items()}
    return Results(
        task=task.spec.name, metrics=task.spec.metrics,
        initial=SCRATCH if initial is None else initial.source,
        baseline=Baseline(name=next(iter(constants.values()))[0], scores={
            name: dict(scores) for name, (_, scores) in constants.items()}))


def _remove_other_checkpoints(run: FinetuningRun, results: Results) -> None:
    """Removes all checkpoints but the best trial's."""
    checkpoints = run.model_dir / run_directory.CHECKPOINTS
    checkpoint_files.remove(
        checkpoints, set(checkpoint_files.steps(checkpoints)) - {results.best_number})
