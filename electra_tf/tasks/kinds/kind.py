"""The interface of a kind of task: examples to rows and loss, results to predictions and scores.

One module per kind implements `TaskKind`: it reads examples, makes rows, computes loss and scores,
answers requests of an exported model, and describes Hugging Face's head.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import Row
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.objectives.objective import Objective
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.examples import LABELLED, Example, Kind
from electra_tf.tasks.files import Columns, Files
from electra_tf.tasks.task import Task, TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens

RowResults = Mapping[str, np.ndarray]
"""The objective's details of one row."""
Record = Mapping[str, Any]
"""An example's prediction: plain values, "key" and "prediction" among them."""
Outputs = Mapping[str, tf.Tensor]
"""Outputs of an exported model, by name."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scored:
    """Predictions and scores of one split."""

    records: Sequence[Record]
    """One per example, in their order."""
    scores: Mapping[str, float]
    """Empty if the truth isn't known."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """Encoded examples."""

    rows: list[Row]
    score: Callable[[Sequence[RowResults], float | None], Scored]
    """Maps the results of every row, and the threshold of "no answer" (None searches one), to
    predictions and scores."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceHead:
    """Hugging Face's head of a kind; `export/hugging_face_heads.py` converts weights by it."""

    architecture: str
    """Class in transformers."""
    layers: Mapping[str, tuple[str, ...]]
    """Dense layer of theirs -> layers of our head whose outputs it holds side by side. The last
    entry computes the outputs; one before it is followed by GELU."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of fine-tuning that make a head of exactly these layers."""
    problem_type: str | None = None
    """Value in config.json that tells kinds of one architecture apart."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedNetwork:
    """A fine-tuned network inside an exported graph."""

    encoder: InferenceEncoder | Encoder
    head: tf_keras.layers.Layer
    """Its variables are float32."""
    texts: RowEncoder
    spec: TaskSpec
    config: TaskConfig
    threshold: float | None
    """Logit of "no answer" above which no answer is given; None gives every answer."""

    def hidden(self, tokens: Tokens) -> tf.Tensor:
        """Returns the last hidden vectors, float32 [B, L, H]."""
        return tf.cast(self.encoder(*tokens), tf.float32)

    def first(self, tokens: Tokens) -> tf.Tensor:
        """Returns the vectors of [CLS], float32 [B, H]."""
        return tf.cast(self.encoder.first(*tokens), tf.float32)


class TaskKind(abc.ABC):
    """One kind of task."""

    kind: ClassVar[Kind]
    """Name of the kind."""
    metrics: ClassVar[tuple[str, ...]]
    """Metrics of tasks that name none; the first is the main one."""
    recipe: ClassVar[Mapping[str, Any]] = {}
    """Settings that differ from the general recipe's."""
    suffix: ClassVar[str]
    """Suffix of files in this kind's own form, beside .jsonl."""
    hugging_face: ClassVar[HuggingFaceHead]
    columns: ClassVar[Columns] = Columns()
    """Columns of benchmarks and converted models."""

    @property
    def labelled(self) -> bool:
        """Tells whether its tasks have a set of labels."""
        return self.kind in LABELLED

    @abc.abstractmethod
    def read(self, path: Path, columns: Columns, *, labelled: bool,
             strict: bool) -> Sequence[Example]:
        """Reads a file of examples.

        Args:
            path: of the file.
            columns: what it has.
            labelled: False for a file to predict, whose labels are ignored.
            strict: refuse what is only left out otherwise.

        Raises:
            UserError: it can't be read, or lacks a column.
        """

    def spec(self, name: str, labels: tuple[str, ...] = ()) -> TaskSpec:
        """Returns the task of a benchmark."""
        return TaskSpec(name=name, kind=self.kind, labels=labels, metrics=self.metrics,
                        texts=self.columns.texts, label=self.columns.label)

    def converted(self, name: str | None, labels: tuple[str, ...]) -> TaskSpec:
        """Returns the task of a model that another program fine-tuned.

        Args:
            name: of the task, if that program noted it.
            labels: as people read them.
        """
        del name
        return self.spec(str(self.kind), labels)

    def own_task(self, name: str, own: Files) -> Task:
        """Returns a task of the user's own files, of which train and dev are given.

        Raises:
            UserError: a file that can't be read, or examples without anything to learn.
        """
        columns = own.columns
        train, dev = (self.read(path, columns, labelled=True, strict=own.strict)
                      for path in (own.train, own.dev))
        spec = TaskSpec(name=name, kind=self.kind, metrics=self.metrics, texts=columns.texts,
                        label=columns.label, key=columns.key)
        spec = self.fitted(spec, own, train, dev)
        test = {} if own.test is None else {
            "test": self.read(own.test, columns, labelled=False, strict=own.strict)}
        return Task(spec=spec, train=train, dev={"dev": dev}, test=test)

    def fitted(self, spec: TaskSpec, own: Files, train: Sequence[Example],
               dev: Sequence[Example]) -> TaskSpec:
        """Returns a task of the user's own with what its examples tell: labels, scale.

        Raises:
            UserError: the examples hold nothing to learn.
        """
        del own, train, dev
        return spec

    def of_spec(self, spec: TaskSpec, examples: Sequence[Example]) -> Sequence[Example]:
        """Returns labelled examples of any file with their labels as the task writes them."""
        del spec
        return examples

    def check(self, spec: TaskSpec, config: TaskConfig) -> None:
        """Raises `UserError` if settings don't go with a task of this kind."""
        if config.feature_based:
            raise UserError(f"--feature_based is for tagging; --task={spec.name} is "
                            f"{spec.kind.replace('_', ' ')}.")

    @abc.abstractmethod
    def texts(self, example: Example) -> tuple[str, ...]:
        """Returns what the encoder reads of an example."""

    @abc.abstractmethod
    def encode(self, spec: TaskSpec, examples: Sequence[Example], encoder: RowEncoder,
               config: TaskConfig) -> Split:
        """Returns examples as rows, and the way back."""

    @abc.abstractmethod
    def objective(self, spec: TaskSpec, config: TaskConfig) -> Objective:
        """Returns what is minimized; it builds encoder and head."""

    @abc.abstractmethod
    def written(self, records: Sequence[Record]) -> str:
        """Returns predictions in this kind's own form."""

    def confusion(self, spec: TaskSpec, examples: Sequence[Example], records: Sequence[Record],
                  ) -> tuple[list[str], list[str]]:
        """Returns true and predicted label of everything that has one, as people read them."""
        del spec, examples, records
        return [], []

    @abc.abstractmethod
    def served_inputs(self, spec: TaskSpec) -> tuple[str, ...]:
        """Returns the names of the texts that an exported model takes."""

    @abc.abstractmethod
    def served_answer(self, network: ServedNetwork, *columns: tf.Tensor) -> Outputs:
        """Maps string [B] for every input, of any length, to answers."""

    @abc.abstractmethod
    def served_scores(self, network: ServedNetwork, tokens: Tokens) -> Outputs:
        """Maps token ids to the network's outputs, undecoded."""
