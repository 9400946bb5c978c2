"""The trainings of a run: seeds, folds and combinations of settings, one after the other."""

import collections
import dataclasses
import itertools
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from electra_tf.config.finetuning import TaskConfig
from electra_tf.config.overrides import Changes
from electra_tf.core.errors import UserError
from electra_tf.core.settings import require
from electra_tf.data.buckets import Row
from electra_tf.finetuning import distillation
from electra_tf.finetuning.results import ALL_FOLDS, Results, main_score, shown_changes
from electra_tf.finetuning.run import FinetuningRun
from electra_tf.tasks import files
from electra_tf.tasks.kinds.base import Split
from electra_tf.tasks.task import Example, Kind, Task


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """One training of a run."""

    seed: int
    changes: Changes = dataclasses.field(default_factory=dict)
    """Settings of a combination of the grid."""
    fold: int | None = None
    """The fold that is scored, from 1, or `ALL_FOLDS`; None scores the task's dev."""
    max_epochs: int | None = None
    """Epochs after which it ends, if `num_train_epochs` are more."""

    @property
    def name(self) -> str:
        """The trial's seed, fold and settings."""
        fold = "" if self.fold is None else f", fold {self.fold}" if self.fold else ", all folds"
        return f"seed {self.seed}{fold}" + (
            f", {shown_changes(self.changes)}" if self.changes else "")

    def line(self, number: int, total: int) -> str:
        """Returns what the trial does, as the command prints it; "" for the only one of a run."""
        epochs = f"; epochs: {self.max_epochs}, the median of the kept ones" if (
            self.max_epochs) else ""
        return f"trial {number} of {total}, {self.name}{epochs}\n" if total > 1 else ""


def planned_trials(run: FinetuningRun) -> list[TrialPlan]:
    """Returns one for each seed, combination and fold; with folds a last one on all examples."""
    training = run.config.training
    folds = range(1, training.num_folds + 1) if training.num_folds else (None,)
    plans = [TrialPlan(seed=training.seed + number, changes=changes, fold=fold)
             for number in range(training.num_trials) for changes in run.combinations
             for fold in folds]
    return plans + ([TrialPlan(seed=training.seed, fold=ALL_FOLDS)] if training.num_folds else [])


def next_plan(run: FinetuningRun, results: Results) -> TrialPlan | None:
    """Returns the next training of a run; None if all are finished."""
    plans, number = planned_trials(run), len(results.trials)
    plan = plans[number] if number < len(plans) else None
    if plan is None or plan.fold != ALL_FOLDS:
        return plan
    best = max(results.combinations(), key=lambda trials: statistics.fmean(
        main_score(trial.scores, results.metrics[0]) for trial in trials))
    return dataclasses.replace(
        plan, changes=best[0].changes,
        max_epochs=round(statistics.median(trial.kept_epoch for trial in best)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialData:
    """The encoded examples of a trial."""

    config: TaskConfig
    fold: int | None
    examples: Sequence[Example]
    """Examples to train on, pairs also swapped."""
    rows: Sequence[Row]
    """A row to train on for each example; of questions and sentences one or more."""
    notes: Sequence[str]
    """Notes on what was cut in the rows."""
    dev_examples: Mapping[str, Sequence[Example]]
    dev: Mapping[str, Split]
    """Splits to score; empty for `ALL_FOLDS`."""

    @classmethod
    def encode(cls, run: FinetuningRun, task: Task, fold: int | None) -> "TrialData":
        """Encodes the examples of a fold with the run's settings."""
        train, dev = task.train, dict(task.dev)
        if fold:
            scored = files.fold_numbers(train, run.config.training.num_folds) == fold - 1
            train, dev["dev"] = (
                [*itertools.compress(task.train, marked)] for marked in (~scored, scored))
        examples = [*train, *task.unlabelled]
        if run.config.task.swap_pairs:
            examples += [dataclasses.replace(example, texts=example.texts[::-1])
                         for example in examples]
        encoded = run.encode(examples)
        rows, notes = run.training_rows(encoded)
        return cls(config=run.config.task, fold=fold, examples=examples, rows=rows,
                   notes=[*encoded.notes, *notes], dev_examples=dev,
                   dev={name: run.encode(part) for name, part in dev.items()})

    def for_trial(self, run: FinetuningRun, task: Task, fold: int | None) -> "TrialData":
        """Returns the data of a fold with the run's settings, which may be these data."""
        is_same = (fold, run.config.task) == (self.fold, self.config)
        return self if is_same else TrialData.encode(run, task, fold)

    def with_teacher(self, run: FinetuningRun) -> "TrialData":
        """Returns the data with the outputs of the run's teacher, if it has one."""
        if run.teacher is None or distillation.IS_LABELLED in self.rows[0].targets:
            return self
        return dataclasses.replace(self, rows=distillation.add_targets(
            run, self.examples, self.rows, self.dev_examples))


def fold_notes(run: FinetuningRun, task: Task) -> list[str]:
    """Returns notes on the folds; `UserError` for a cross-validation that is not possible."""
    num_folds, flag = run.config.training.num_folds, "--num_folds"
    if not num_folds:
        return []
    require(num_folds > 1, flag, "2 or more", num_folds)
    if task.dev:
        fix = ", or give --train without --dev" if run.spec.name in set(Kind) else ""
        raise UserError(f"{flag}={num_folds} scores on parts of --train; leave it out to score on "
                        f"{', '.join(task.dev)}{fix}.")
    if run.config.training.num_trials > 1:
        raise UserError(f"{flag}={num_folds} trains one model per fold; leave out --num_trials.")
    sizes = np.bincount(files.fold_numbers(task.train, num_folds)).tolist()
    labels = collections.Counter(
        label for example in task.train if run.spec.labels and hasattr(example, "label")
        for label in files.labels_of(example))
    most = max(labels.values(), default=num_folds)
    require(num_folds <= min(len(sizes), most), flag, f"at most {min(len(sizes), most)}, the "
            "number of different texts or of the most frequent label's examples", num_folds)
    rare = ", ".join(f"{label} ({count})" for label, count in labels.items() if count < num_folds)
    return [f"{num_folds} folds of {min(sizes):,} to {max(sizes):,} examples; the kept model is "
            "trained on all of them", *([f"labels that some folds lack: {rare}"] if rare else [])]
