"""Runs the trials of a fine-tuning run, each of several epochs, and keeps the best model."""

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.checkpoints import checkpoint_files, run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.weights import ENCODER, assign_weights, checkpoint_in_use
from electra_tf.config.finetuning import FinetuningTrainingConfig
from electra_tf.config.finetuning_flags import SCRATCH
from electra_tf.data.buckets import Row
from electra_tf.finetuning.finetuner import Finetuner, Interval
from electra_tf.finetuning.outputs import write_outputs
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import Baseline, Epoch, Results, Trial, main_score, shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.formats.pretrained import Pretrained
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.platform.command_line import as_started, same_command
from electra_tf.platform.signals import Interrupted
from electra_tf.reporting.progress import StepTimer, duration
from electra_tf.tasks.kinds.kind import Split
from electra_tf.tasks.task import Task
from electra_tf.training import failures
from electra_tf.training.devices import device_name


@failures.explained()
def train(run: FinetuningRun, task: Task, initial: Pretrained | None) -> Results:
    """Runs the remaining trials and keeps the best one's model and predictions.

    Without `initial` it trains from scratch. `Interrupted` keeps finished trials. `UserError` for
    another run's directory, missing weights, or a loss that isn't finite.
    """
    source = SCRATCH if initial is None else initial.source
    if initial is not None:  # Refuses weights of another shape before it writes a file.
        assign_weights(run.build_model(0).encoder.variables, initial.weights, source)
    run_directory.claim(run.model_dir, run.identity(task, source))
    with run_directory.only_process(run.model_dir):
        run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
        constants = {name: run.kind.baseline(run.spec, task.train, examples)
                     for name, examples in task.dev.items()}
        results = Results.load(run.model_dir) or Results(
            task=task.spec.name, metrics=task.spec.metrics, initial=source,
            baseline=Baseline(name=next(iter(constants.values()))[0], scores={
                name: dict(scores) for name, (_, scores) in constants.items()}))
        if results.trials:  # Refuses a missing checkpoint before it runs further trials.
            checkpoint_in_use(run.model_dir)
        examples = list(task.train)
        if run.config.task.swap_pairs:
            examples += [dataclasses.replace(one, texts=one.texts[::-1]) for one in task.train]
        encoded = run.encode(examples)
        rows = encoded.rows
        dev = {name: run.encode(examples) for name, examples in task.dev.items()}
        _print_header(run, task, initial, {"train": encoded, **dev}, len(results.trials))
        try:
            for number in range(len(results.trials), run.config.training.num_trials):
                results = _add_trial(run, results, number, rows, dev, initial)
            seen = write_outputs(run, task, dev, results)
        except Interrupted as interrupted:
            raise Interrupted(interrupted.number, (
                f"stopped in --task={run.spec.name}: {len(results.trials)} of "
                f"{run.config.training.num_trials} trials finished and kept. To go on from there: "
                f"{same_command()}")) from None
    print(f"\n{results.table()}{seen}\nresults  {run.model_dir / run_directory.RESULTS_FILE}\n"
          f"model    {run.model_dir / run_directory.CHECKPOINTS}", flush=True)
    return results


def run_trial(run: FinetuningRun, model: TaskNetwork, rows: Sequence[Row],
              dev: Mapping[str, Split], *, metric: str, seed: int) -> Trial:
    """Trains a model, scores it after every epoch, and assigns the weights to keep to it.

    `rows` are training examples. The score `metric` on the first split of `dev` decides which epoch
    is best. `seed` determines order and dropout.
    """
    training = run.config.training
    finetuner = Finetuner(run, model, rows, seed=seed)
    predictor = Predictor(run, model)
    timer = _TrialTimer(finetuner.num_steps, training)
    epochs: list[Epoch] = []
    kept, kept_weights = 0, []
    losses: list[tuple[int, float]] = []
    for interval in finetuner.epochs():
        timer.trained(interval)
        if not interval.passing:
            losses.append((interval.step, interval.loss))
        if not interval.ends_epoch:
            print(timer.line(f"loss {interval.loss:.4f}"), flush=True)
            continue
        loss = _mean_loss(losses, epochs[-1].step if epochs else 0)
        scores = {name: dict(split.score(predictor.predict(split.rows), None).scores)
                  for name, split in dev.items()}
        timer.count_other_work("evaluation")
        epochs.append(Epoch(epoch=interval.epoch, step=interval.step, loss=loss, scores=scores))
        print(timer.line(f"mean loss of the epoch {loss:.4f}"), *(
            f"{split}: " + ", ".join(f"{name} {shown_score(name, values[name])}"
                                     for name in run.spec.metrics)
            for split, values in scores.items()), sep="  ", flush=True)
        first = next(iter(scores))
        if not training.keep_best or len(epochs) == 1 or main_score(
                scores[first], metric) > main_score(epochs[kept].scores[first], metric):
            kept = len(epochs) - 1
            kept_weights = [variable.numpy() for variable in model.variables
                            if training.keep_best]
    for variable, value in zip(model.variables, kept_weights, strict=False):
        variable.assign(value)
    return Trial(seed=seed, losses=tuple(losses), epochs=tuple(epochs), kept_epoch=kept + 1,
                 seconds=timer.elapsed, examples_per_second=timer.examples_per_second)


def _add_trial(run: FinetuningRun, results: Results, number: int, rows: Sequence[Row],
               dev: Mapping[str, Split], initial: Pretrained | None) -> Results:
    """Runs a trial, saves its model if it is the best so far, and then saves its scores."""
    directory, seed = run.model_dir / run_directory.CHECKPOINTS, run.config.training.seed + number
    if run.config.training.num_trials > 1:
        print(f"trial {number + 1} of {run.config.training.num_trials}, seed {seed}", flush=True)
    model = run.build_model(seed)
    if initial is not None:
        assign_weights(model.encoder.variables, initial.weights, initial.source)
    trial = run_trial(run, model, rows, dev, metric=results.metrics[0], seed=seed)
    results = dataclasses.replace(results, trials=(*results.trials, trial))
    if results.best is trial:
        step = tf.Variable(trial.epochs[trial.kept_epoch - 1].step, dtype=tf.int64, name="step")
        CheckpointManager(tf.train.Checkpoint(model=model, step=step), directory, keep=0).save(
            results.best_number)
    # The saved results name the best trial's checkpoint, so the others are obsolete only now.
    results.save(run.model_dir)
    checkpoint_files.remove(
        directory, set(checkpoint_files.steps(directory)) - {results.best_number})
    return results


def _mean_loss(losses: Sequence[tuple[int, float]], after: int) -> float:
    """Returns the mean over all steps past `after` from last step and mean of every interval."""
    inside = [(step, loss) for step, loss in losses if step > after]
    begins = [after, *(step for step, _ in inside)]
    return sum((step - begin) * loss for begin, (step, loss) in zip(begins, inside, strict=False)
               ) / (begins[-1] - after)


class _TrialTimer(StepTimer):
    """The clock of a trial, whose throughput excludes evaluation."""

    def __init__(self, num_steps: int, training: FinetuningTrainingConfig):
        super().__init__(sample_seconds=0.0)  # The median ignores the few intervals that compile.
        self._num_steps, self._training = num_steps, training
        self._step = self._epoch = 0
        self._training_seconds = 0.0

    def trained(self, interval: Interval) -> None:
        """Counts the time as that of the steps since the last interval."""
        self._training_seconds += self.steps(interval.step - self._step)
        self._step, self._epoch = interval.step, interval.epoch

    @property
    def examples_per_second(self) -> float:
        examples = self._step * self._training.train_batch_size
        return examples / max(self._training_seconds, 1e-9)

    def line(self, loss: str) -> str:
        total, columns = f"{self._num_steps:,}", [loss, f"elapsed {duration(self.elapsed)}"]
        if len(self._samples) > 2:
            speed = self._training.train_batch_size / max(1e-9, statistics.median(self._samples))
            left = self.remaining_seconds(self._num_steps - self._step, {
                "evaluation": math.ceil(self._training.num_train_epochs) - self._epoch})
            columns[1:] = [f"{speed:>6,.0f} examples/s", columns[1], f"ETA {duration(left)}"]
        return (f"  epoch {self._epoch:>2}  step {self._step:>{len(total)},}/{total}  "
                + "  ".join(columns))


def _print_header(run: FinetuningRun, task: Task, initial: Pretrained | None,
                  splits: Mapping[str, Split], done: int) -> None:
    spec, training, strategy = run.spec, run.config.training, run.strategy
    rows = splits["train"].rows
    counts = [f"train {len(task.train):,} as {len(rows):,} rows", *(
        f"{name} {len(examples):,}" for name, examples in (*task.dev.items(), *task.test.items()))]
    labels = f", {len(spec.labels)} labels" if spec.labels else ""
    source = "random weights (from scratch)" if initial is None else (
        f"{initial.source}: {sum(name.startswith(ENCODER) for name in initial.weights)} weights; "
        "the head is new")
    left = max(0, training.num_trials - done)
    compiled = [f"compile  the step for each of up to {len(run.lengths_for(rows))} row lengths, in "
                "every trial; the first steps take longer"] if left else []
    print(f"task     {spec.name}: {spec.kind.replace('_', ' ')}{labels}; {', '.join(counts)}\n"
          f"encoder  initialized from {source}\n"
          f"devices  {strategy.num_replicas_in_sync} x {device_name(strategy)}, "
          f"{training.precision.value}\n"
          f"trials   {done} done, {left} to go; "
          f"{training.num_train_epochs:g} epochs of {run.config.num_train_steps(len(rows)):,} "
          "steps in all", *compiled, *(f"note     {note}" for note in task.notes),
          *(f"note     {name}: {note}" for name, split in splits.items() for note in split.notes),
          *(f"warning  {as_started(warning)}" for warning in run.warnings(task.train, rows)),
          sep="\n", flush=True)
