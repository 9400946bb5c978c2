"""The loop of fine-tuning: trials, their epochs and batches; the best trial's model is kept."""

import contextlib
import dataclasses
import hashlib
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files, run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.weights import ENCODER, checkpoint_in_use
from electra_tf.config.finetuning import SCRATCH, FinetuningConfig
from electra_tf.config.overrides import override
from electra_tf.data.buckets import Row, RowBatch, make_batch, plan_epoch
from electra_tf.finetuning import distillation
from electra_tf.finetuning.outputs import write_outputs
from electra_tf.finetuning.predictor import CompiledByShape, Predictor
from electra_tf.finetuning.results import Baseline, Epoch, Results, Trial, main_score, shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.formats.pretrained import Pretrained
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.objectives.objective import Ratio
from electra_tf.platform.command_line import as_started, same_command
from electra_tf.platform.errors import UserError
from electra_tf.platform.signals import Interrupted
from electra_tf.reporting.progress import StepTimer, duration
from electra_tf.reporting.trackers import Log, tracked
from electra_tf.tasks.kinds.base import Split
from electra_tf.tasks.kinds.long_texts import limit_windows
from electra_tf.tasks.task import Task
from electra_tf.text import coverage
from electra_tf.training import failures
from electra_tf.training.devices import build_state, build_step, device_name, run_on_replicas


@failures.explained()
def train(run: FinetuningRun, task: Task, initial: Pretrained | None) -> Results:
    """Runs the remaining trials and keeps the best one's model and predictions.

    A trial trains `initial` with a new head, or from scratch if it is None, and scores dev after
    every epoch. `Interrupted` keeps finished trials. `UserError` for another run's directory,
    missing weights, or a loss that isn't finite.
    """
    checkpoints = run.model_dir / run_directory.CHECKPOINTS
    num_trials = run.config.training.num_trials
    with _claimed_directory(run, task, initial):
        results, rows, dev = _prepare(run, task, initial)
        for number in range(len(results.trials), num_trials):
            seed = run.config.training.seed + number
            if num_trials > 1:
                print(f"trial {number + 1} of {num_trials}, seed {seed}", flush=True)
            model = run.build_model(seed, initial)
            with tracked(run.config.runtime.report_to, run.model_dir / run_directory.TRACKERS_FILE,
                         override(run.config, {"training.seed": seed}),
                         {"task": results.task, "initial": results.initial},
                         f"seed {seed}") as track:
                trial = train_trial(run, model, rows, dev, results.metrics, seed, track)
            results = dataclasses.replace(results, trials=(*results.trials, trial))
            if results.best is trial:
                step = tf.Variable(trial.epochs[trial.kept_epoch - 1].step, dtype=tf.int64,
                                   name="step")
                CheckpointManager(tf.train.Checkpoint(model=model, step=step), checkpoints,
                                  keep=0).save(results.best_number)
            # The saved results name the best trial's checkpoint, so the others are obsolete now.
            results.save(run.model_dir)
            checkpoint_files.remove(
                checkpoints, set(checkpoint_files.steps(checkpoints)) - {results.best_number})
        mistakes = write_outputs(run, task, dev, results)
    print(f"\n{results.table()}{mistakes}\n"
          f"results  {run.model_dir / run_directory.RESULTS_FILE}\n"
          f"model    {checkpoints}", flush=True)
    return results


def train_trial(run: FinetuningRun, model: TaskNetwork, rows: Sequence[Row],
                dev: Mapping[str, Split], metrics: Sequence[str], seed: int,
                track: Log = lambda step, values: None) -> Trial:
    """Trains a model and scores it after every epoch; it ends with the kept epoch's weights."""
    training, num_steps = run.config.training, run.config.num_train_steps(len(rows))
    log_every = run.config.runtime.log_interval(num_steps)
    lengths, padded_lengths = [row.ids.size for row in rows], run.padded_lengths(rows)
    train_step = compile_train_step(run, model, num_steps=num_steps, seed=seed)
    predictor, progress = Predictor(run, model), _Progress(num_steps, run.config)
    epochs, history, step = [], [], 0
    while step < num_steps:
        plan = plan_epoch(lengths, training.train_batch_size, seed=seed, epoch=len(epochs))
        plan = plan[:num_steps - step]
        next_step, last_step = step + 1, step + len(plan)
        losses, loss_sum = [], 0.0
        for step, indices in enumerate(plan, start=next_step):
            batch = make_batch([rows[index] for index in indices], training.train_batch_size,
                               padded_lengths, run.text.vocabulary.pad_id)
            losses.append(train_step(batch.ids.shape, run.distributed(batch))["loss"])
            ends_interval = step == last_step or step % log_every == 0
            if not (ends_interval or progress.is_line_due()):
                continue  # The devices compute on; a loss is read only for a line.
            loss = float(np.mean([ratio.sum.numpy() / ratio.weight.numpy() for ratio in losses]))
            if not np.isfinite(loss):
                raise UserError(f"the loss is not finite in epoch {len(epochs) + 1}. Try a lower "
                                "--learning_rate, or --precision=float32, in a new --model_dir.")
            progress.trained(step, epoch=len(epochs) + 1)
            if step < last_step:
                print(progress.line(f"loss {loss:.4f}"), flush=True)
            if ends_interval:
                history.append((step, loss))
                track(step, {"train/loss": loss})
                loss_sum += len(losses) * loss
                losses = []
        scores = {name: dict(split.score(predictor.predict(split.rows), None).scores)
                  for name, split in dev.items()}
        progress.count_other_work("evaluation")
        epochs.append(Epoch(epoch=len(epochs) + 1, step=step, loss=loss_sum / len(plan),
                            scores=scores))
        track(step, {f"{split}/{metric}": value for split, values in scores.items()
                     for metric, value in values.items()})
        print(progress.epoch_line(epochs[-1], metrics), flush=True)
        kept = epochs[-1]
        if training.keep_best:
            kept = max(epochs, key=lambda epoch: main_score(epoch.scores, metrics[0]))
            if kept is epochs[-1]:
                kept_weights = [variable.numpy() for variable in model.variables]
    if training.keep_best:
        for variable, value in zip(model.variables, kept_weights, strict=True):
            variable.assign(value)
    return Trial(seed=seed, losses=tuple(history), epochs=tuple(epochs), kept_epoch=kept.epoch,
                 seconds=progress.elapsed, examples_per_second=progress.examples_per_second)


def compile_train_step(run: FinetuningRun, model: TaskNetwork, *, num_steps: int,
                       seed: int) -> CompiledByShape:
    """Returns a training step on all replicas; it takes the shape of ids, and a batch.

    `seed` determines dropout, `num_steps` the schedule of the learning rate.
    """
    config, objective = override(run.config, {"training.seed": seed}), run.objective
    if run.teacher is not None:
        objective, model = distillation.student(run, model, seed)
    state = build_state(config, model, run.strategy, rate_factors(
        (variable.name for variable in model.trainable_variables),
        num_layers=config.model.num_layers, decay=config.optimizer.layerwise_decay,
        skip_first=config.optimizer.layerwise_decay_skips_one))
    train_step = build_step(config, objective, state, run.strategy, num_steps)

    def run_step(batch: RowBatch) -> Mapping[str, Ratio]:  # TPUs need a function with a name.
        return run_on_replicas(run.strategy, train_step, batch)

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


@contextlib.contextmanager
def _claimed_directory(run: FinetuningRun, task: Task,
                       initial: Pretrained | None) -> Iterator[None]:
    """Claims the run's directory for this process; `Interrupted` says how many trials are kept."""
    if initial is not None:
        run.build_model(0, initial)  # Refuses weights of another shape before it writes a file.
    digest = hashlib.sha256()
    unlabelled = [("unlabelled", task.unlabelled)] if task.unlabelled else []
    for name, examples in (("train", task.train), *task.dev.items(), *unlabelled):
        digest.update(name.encode())
        for example in examples:
            digest.update(repr(example).encode())
    identity = run_directory.identity(run.config, run.spec.facts() | run.text.facts() | {
        "initial": SCRATCH if initial is None else initial.source, "data": digest.hexdigest()} | (
            distillation.facts(run.teacher) if run.teacher else {}))
    del identity["training.num_trials"]  # More trials may follow later.
    run_directory.claim(run.model_dir, identity)
    with run_directory.only_process(run.model_dir):
        try:
            yield
        except Interrupted as interrupted:
            results = Results.load(run.model_dir)
            raise Interrupted(interrupted.number, (
                f"stopped in --task={run.spec.name}: {len(results.trials) if results else 0} of "
                f"{run.config.training.num_trials} trials finished and kept. To go on from there: "
                f"{same_command()}")) from None


def _prepare(run: FinetuningRun, task: Task, initial: Pretrained | None) -> tuple[
        Results, list[Row], dict[str, Split]]:
    """Returns the results so far, the training rows and the splits to score; prints a header."""
    run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
    results = Results.load(run.model_dir)
    if results is None:
        constants = {name: run.kind.baseline(run.spec, task.train, examples)
                     for name, examples in task.dev.items()}
        results = Results(
            task=task.spec.name, metrics=task.spec.metrics,
            initial=SCRATCH if initial is None else initial.source,
            baseline=Baseline(name=next(iter(constants.values()))[0], scores={
                name: dict(scores) for name, (_, scores) in constants.items()}))
    else:  # Refuses a missing checkpoint before it runs further trials.
        checkpoint_in_use(run.model_dir)
    examples = [*task.train, *task.unlabelled]
    if run.config.task.swap_pairs:
        examples += [dataclasses.replace(example, texts=example.texts[::-1])
                     for example in examples]
    encoded = run.encode(examples)
    dev = {name: run.encode(examples) for name, examples in task.dev.items()}
    rows, left_out = limit_windows(encoded.rows, run.config.task)
    spec, training = run.spec, run.config.training
    labels = f", {len(spec.labels)} labels" if spec.labels else ""
    sizes = f"train {len(task.train):,}" + (
        f" and {len(task.unlabelled):,} unlabelled" if task.unlabelled else "")
    counts = [f"{sizes} as {len(rows):,} rows", *(
        f"{name} {len(examples):,}" for name, examples in (*task.dev.items(), *task.test.items()))]
    source = "random weights (from scratch)" if initial is None else (
        f"{initial.source}: {sum(name.startswith(ENCODER) for name in initial.weights)} weights; "
        "the head is new")
    num_finished = len(results.trials)
    remaining = max(0, training.num_trials - num_finished)
    vocabulary = run.text.vocabulary
    ids = np.concatenate([row.ids.ravel() for row in rows])
    ids = ids[~np.isin(ids, [vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id])]
    texts = [text for example in task.train for text in example.texts]
    num_changed = coverage.count_changed(texts) if run.text.normalization.strip_accents else 0
    warnings = coverage.coverage_warnings(
        *coverage.count_words(ids, vocabulary), sum(map(len, texts)), num_changed)
    compiled = [f"compile  the step for each of up to {len(run.padded_lengths(rows))} row lengths, "
                "in every trial; the first steps take longer"] if remaining else []
    print(f"task     {spec.name}: {spec.kind.replace('_', ' ')}{labels}; {', '.join(counts)}\n"
          f"encoder  initialized from {source}\n"
          f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
          f"{training.precision.value}\n"
          f"trials   {num_finished} done, {remaining} to go; "
          f"{training.num_train_epochs:g} epochs of {run.config.num_train_steps(len(rows)):,} "
          "steps in all", *compiled, *(f"note     {note}" for note in task.notes),
          *(f"note     {name}: {note}" for name, split in (("train", encoded), *dev.items())
            for note in split.notes),
          *(f"note     train: {note}" for note in left_out),
          *(f"warning  {as_started(warning)}" for warning in warnings),
          sep="\n", flush=True)
    if run.teacher is not None and remaining:
        rows = distillation.add_targets(run, examples, rows, task.dev)
    return results, rows, dev


class _Progress(StepTimer):
    """The clock and the lines of a trial, whose throughput excludes evaluation."""

    def __init__(self, num_steps: int, config: FinetuningConfig):
        super().__init__(sample_seconds=0.0)  # The median ignores the few intervals that compile.
        self._num_steps, self._config = num_steps, config
        self._step = self._epoch = 0
        self._training_seconds = 0.0

    def is_line_due(self) -> bool:
        return 0 < self._config.runtime.log_every_seconds <= self._clock() - self._last

    def trained(self, step: int, *, epoch: int) -> None:
        """Counts the time as that of the steps since the last call."""
        self._training_seconds += self.steps(step - self._step)
        self._step, self._epoch = step, epoch

    @property
    def examples_per_second(self) -> float:
        examples = self._step * self._config.training.train_batch_size
        return examples / max(self._training_seconds, 1e-9)

    def line(self, loss: str) -> str:
        training = self._config.training
        total, columns = f"{self._num_steps:,}", [loss, f"elapsed {duration(self.elapsed)}"]
        if len(self._samples) > 2:
            speed = training.train_batch_size / max(1e-9, statistics.median(self._samples))
            seconds_left = self.remaining_seconds(self._num_steps - self._step, {
                "evaluation": math.ceil(training.num_train_epochs) - self._epoch})
            columns[1:] = [f"{speed:>6,.0f} examples/s", columns[1],
                           f"ETA {duration(seconds_left)}"]
        return (f"  epoch {self._epoch:>2}  step {self._step:>{len(total)},}/{total}  "
                + "  ".join(columns))

    def epoch_line(self, epoch: Epoch, metrics: Iterable[str]) -> str:
        """Returns the line after an epoch, with its mean loss and its scores on all splits."""
        return "  ".join([self.line(f"mean loss of the epoch {epoch.loss:.4f}"), *(
            f"{split}: " + ", ".join(f"{name} {shown_score(name, scores[name])}"
                                     for name in metrics)
            for split, scores in epoch.scores.items())])
