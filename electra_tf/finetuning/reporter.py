"""Prints what a run is about to train, and the progress of its trials."""

import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from electra_tf.checkpoints.weights import ENCODER
from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.model import InitializationConfig
from electra_tf.config.overrides import flatten
from electra_tf.finetuning.results import Epoch, shown_score
from electra_tf.finetuning.run import FinetuningRun
from electra_tf.finetuning.trials import TrialData, planned_trials
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.reporting.progress import StepTimer, duration
from electra_tf.tasks.task import Task
from electra_tf.text import coverage
from electra_tf.training.devices import device_name


def print_header(run: FinetuningRun, task: Task, initial: Checkpoint | None, data: TrialData,
                 num_finished: int, notes: Sequence[str]) -> None:
    """Prints the task, the encoder, the devices, the trials, notes and warnings."""
    spec, training, rows = run.spec, run.config.training, data.rows
    # The sizes of the task and of its splits.
    labels = f", {len(spec.labels)} labels" if spec.labels else ""
    unlabelled = f" and {len(task.unlabelled):,} unlabelled" if task.unlabelled else ""
    sizes = [f"train {len(task.train):,}{unlabelled} as {len(rows):,} rows", *(
        f"{name} {len(examples):,}" for name, examples in (*task.dev.items(), *task.test.items()))]
    lines = [f"task     {spec.name}: {spec.kind.replace('_', ' ')}{labels}; {', '.join(sizes)}",
             f"encoder  {_origin(run, initial)}",
             f"devices  {run.strategy.num_replicas_in_sync} x {device_name(run.strategy)}, "
             f"{training.precision.value}"]

    # The trials: how many, how long, and how often each of them compiles its step.
    remaining = max(0, len(planned_trials(run)) - num_finished)
    num_lengths = len(run.padded_lengths(rows, training.num_train_epochs))
    length = f"{len(run.combinations)} combinations of settings" if run.grid else (
        f"{training.num_train_epochs:g} epochs of {run.config.num_train_steps(len(rows)):,} steps "
        "in all")
    lines.append(f"trials   {num_finished} done, {remaining} to go; {length}")
    if remaining:
        lines.append(f"compile  one step for each of up to {num_lengths} row lengths, in every "
                     "trial; the first steps take longer")
    class_weights = run.with_class_weights(data.examples).objective.class_weights
    if class_weights:
        lines.append("weights  " + ", ".join(f"{label}={weight:.4g}" for label, weight in zip(
            spec.label_words, class_weights, strict=False)))

    # Notes, and warnings of text that the vocabulary can't represent.
    lines += [f"note     {note}" for note in notes]
    lines += [f"note     {name}: {note}" for name, part in (("train", data), *data.dev.items())
              for note in part.notes]
    vocabulary = run.text.vocabulary
    ids = np.concatenate([row.ids.ravel() for row in rows])
    ids = ids[~np.isin(ids, [vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id])]
    texts = [text for example in task.train for text in example.texts]
    num_changed = coverage.count_changed(texts) if run.text.normalization.strip_accents else 0
    lines += [f"warning  {warning}" for warning in coverage.coverage_warnings(
        *coverage.count_words(ids, vocabulary), sum(map(len, texts)), num_changed)]
    print("\n".join(lines), flush=True)


def _origin(run: FinetuningRun, initial: Checkpoint | None) -> str:
    """Returns where the initial weights of encoder and head come from."""
    if initial is None:
        normal = InitializationConfig.normal()
        other = [f"{name.partition('.')[2]}={value}"
                 for name, value in flatten(run.config).items() if normal.get(name, value) != value]
        return f"from scratch, {', '.join(other) or 'normal initialization'}"
    count = sum(name.startswith(ENCODER) for name in initial.weights)
    if not run.kind.hugging_face.layers:
        return f"initialized from {initial.source}: {count} weights"
    if run.fits_head(initial):
        return f"and head initialized from {initial.source}: {len(initial.weights)} weights"
    reason = "" if initial.task is None else ", as its task has other labels or another head"
    return f"initialized from {initial.source}: {count} weights; the head is new{reason}"


class TrialProgress(StepTimer):
    """The clock and the lines of a trial, whose throughput excludes evaluation."""

    def __init__(self, num_steps: int, config: FinetuningConfig):
        super().__init__(sample_seconds=0.0)  # The median ignores the few intervals that compile.
        self.num_steps, self._config, self.step = num_steps, config, 0
        self.log_every = config.runtime.log_interval(num_steps)
        self._epoch, self._training_seconds = 0, 0.0

    def is_line_due(self) -> bool:
        """Returns True after `log_every_seconds` without a line."""
        return 0 < self._config.runtime.log_every_seconds <= self._clock() - self._last

    def trained(self, step: int, *, epoch: int) -> None:
        """Counts the time as that of the steps since the last call."""
        self._training_seconds += self.steps(step - self.step)
        self.step, self._epoch = step, epoch

    @property
    def examples_per_second(self) -> float:
        """The throughput of training, including compilation and excluding evaluation."""
        examples = self.step * self._config.training.train_batch_size
        return examples / max(self._training_seconds, 1e-9)

    def line(self, loss: str) -> str:
        """Returns epoch, step, loss and time; after a few intervals also throughput and ETA."""
        training = self._config.training
        total, columns = f"{self.num_steps:,}", [loss, f"elapsed {duration(self.elapsed)}"]
        if len(self._samples) > 2:
            speed = training.train_batch_size / max(1e-9, statistics.median(self._samples))
            seconds_left = self.remaining_seconds(self.num_steps - self.step, {
                "evaluation": math.ceil(training.num_train_epochs) - self._epoch})
            columns[1:] = [f"{speed:>6,.0f} examples/s", columns[1],
                           f"ETA {duration(seconds_left)}"]
        return (f"  epoch {self._epoch:>2}  step {self.step:>{len(total)},}/{total}  "
                + "  ".join(columns))

    def epoch_line(self, epoch: Epoch, metrics: Iterable[str]) -> str:
        """Returns the line after an epoch, with its mean loss and its scores on all splits."""
        return "  ".join([self.line(f"mean loss of the epoch {epoch.loss:.4f}"), *(
            f"{split}: " + ", ".join(f"{name} {shown_score(name, scores[name])}"
                                     for name in metrics)
            for split, scores in epoch.scores.items())])
