"""A task: its kind, its examples as they were read, and its specification."""

import dataclasses
import enum
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.core import strict_json
from electra_tf.core.errors import UserError, shown


class Kind(enum.StrEnum):
    """The kind of a task, which decides the encoder's head."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"
    MULTILABEL = "multilabel"
    TAGGING = "tagging"
    QUESTION_ANSWERING = "question_answering"
    SENTENCE_EMBEDDINGS = "sentence_embeddings"


LABEL_KINDS = (Kind.CLASSIFICATION, Kind.MULTILABEL, Kind.TAGGING)
"""Kinds with a set of labels."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextExample:
    """One to three texts with a label, a number or a set of labels, which is None if unknown."""

    key: str
    """Name of the example within its file and in predictions."""
    texts: tuple[str, ...]
    label: str | float | tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggedExample:
    """A sentence as words with a tag for each, IOB2 for spans; the tags are None if unknown."""

    key: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.words


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionExample:
    """A question about a context, which may or may not contain the answer."""

    key: str
    question: str
    context: str
    span: tuple[int, int] | None = None
    """The answer to train on: its first character in the context, and one past its last."""
    gold: tuple[str, ...] = ()
    """All correct answers for scoring; empty if they are unknown or the question has none."""
    is_impossible: bool = False
    """The context holds no answer."""

    @property
    def texts(self) -> tuple[str, ...]:
        """Returns what the encoder reads."""
        return self.question, self.context


Example = TextExample | TaggedExample | QuestionExample
Examples = Sequence[Example]
"""Examples of one kind."""

BINARY = ("0", "1")
LABEL_WORDS = {
    "cola": ("unacceptable", "acceptable"), "sst2": ("negative", "positive"),
    "mrpc": ("not_equivalent", "equivalent"), "qqp": ("not_duplicate", "duplicate"),
    "wnli": ("not_entailment", "entailment")}
"""Task of GLUE -> words for the labels of `BINARY`, which its files have."""
_PREFIX = "task_"
_SAVED_NAMES = {"text_columns": "texts", "label_column": "label", "key_column": "key"}
"""Prefix of a task's fields among a run's facts, and the fields that have other names there."""


class TaskSpec(strict_json.Object):
    """The specification of a task: plain values that are stored with a trained model."""

    name: str
    """Value of `--task`."""
    kind: Kind
    labels: tuple[str, ...] = ()
    """Classes or tags by index, as the task's files write them; empty for numbers and questions."""
    metrics: tuple[str, ...]
    """Names of the scores; the first is the main one."""
    scale: float = 1.0
    """The network learns (number - offset) / scale."""
    offset: float = 0.0
    text_columns: tuple[str, ...] = ("text",)
    """One or two columns of texts; for tagging one column with the list of words; for sentence
    embeddings up to three, those of the training file."""
    label_column: str = "label"
    """Column of the label, the number, or the list of labels or tags; with commas indicators."""
    key_column: str = ""
    """Column that names a row in predictions; the line number if empty."""

    def __post_init__(self):
        most = 3 if self.kind == Kind.SENTENCE_EMBEDDINGS else 2
        if not 1 <= len(self.text_columns) <= most:
            allowed = {2: "two separated by a comma", 3: "two or three separated by commas"}[most]
            raise UserError(f"--text_columns takes one column, or {allowed}. "
                            f"Received: {','.join(self.text_columns)!r}")
        if len(set(self.labels)) < len(self.labels) or not self.metrics:
            raise ValueError(f"labels {shown(self.labels)}, metrics {shown(self.metrics)}")
        if not (0 < self.scale < math.inf and math.isfinite(self.offset)):
            raise ValueError(f"scale {self.scale}, offset {self.offset}")

    @property
    def float32_units(self) -> tuple[np.float32, np.float32]:
        """Scale and offset of an exported or converted model, whose answers are float32.

        Raises `UserError` if that rounds answers by a hundredth of the scale or more.
        """
        scale, offset = np.float32(self.scale), np.float32(self.offset)
        if not (step := np.spacing(abs(offset))) <= self.scale / 100:
            raise UserError(
                f"the numbers of the task {self.name} have the mean {self.offset:g} and the "
                f"standard deviation {self.scale:g}, and other formats answer in float32, in steps "
                f"of {step:g} there: predict with the run, or train on differences from the mean.")
        return scale, offset

    @property
    def label_words(self) -> tuple[str, ...]:
        """Returns readable labels, for predictions, plots, exports and conversions."""
        return LABEL_WORDS.get(self.name, BINARY) if self.labels == BINARY else self.labels

    def to_dict(self) -> dict[str, Any]:
        """Returns all fields, under names that differ from those of settings."""
        return {f"{_PREFIX}{_SAVED_NAMES.get(name, name)}":
                list(value) if isinstance(value, tuple) else value
                for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], source: object) -> "TaskSpec | None":
        """Returns the specification whose `to_dict` is among a run's facts, or None without one.

        Raises `UserError` if it is damaged.
        """
        names = {f"{_PREFIX}{_SAVED_NAMES.get(field.name, field.name)}": field.name
                 for field in dataclasses.fields(cls)}
        facts = {names.get(name, name): value for name, value in saved.items()
                 if name.startswith(_PREFIX)}
        if not facts:
            return None
        try:
            if missing := {*names.values()} - facts.keys():
                raise strict_json.Unreadable(f"{min(missing)!r} is missing")
            spec = strict_json.loads(json.dumps(facts).encode(), cls)
            if bool(spec.labels) != (spec.kind in LABEL_KINDS):
                raise strict_json.Unreadable(f"{spec.kind} with {len(spec.labels)} labels")
        except strict_json.Unreadable as error:
            raise UserError(f"settings.json of {source} is damaged: its task: {error}; restore it "
                            "or start a new --model_dir.") from error
        return spec


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """A task and its examples."""

    spec: TaskSpec
    train: Sequence[Example]
    dev: Mapping[str, Sequence[Example]]
    """Split -> examples to score; the first split decides which epoch and trial are best."""
    test: Mapping[str, Sequence[Example]]
    """Split -> examples to predict."""
    unlabelled: Sequence[Example] = ()
    """Examples that only a teacher labels in training."""
    notes: Sequence[str] = ()
    """Notes on the data, which the command prints."""
