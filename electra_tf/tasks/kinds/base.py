"""Defines the interface of task kinds: rows and loss of examples, predictions, scores, exports."""

import abc
import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.config.finetuning import FinetuningConfig, TaskConfig
from electra_tf.config.model import ModelConfig
from electra_tf.core.errors import UserError, shown
from electra_tf.core.storage import Path
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling.encoder import Encoder
from electra_tf.modeling.fused import dimensions
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.modeling.pooling import pool
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import ScoreHead, TaskNetwork
from electra_tf.objectives.objective import LossOutput, count
from electra_tf.tasks import files
from electra_tf.tasks.files import Files
from electra_tf.tasks.labels import given_weights, notes_on
from electra_tf.tasks.task import LABEL_KINDS, Example, Examples, Kind, Task, TaskSpec, TextExample
from electra_tf.text.rows import RowEncoder, Tokens, cut_notes

KINDS_OF_SETTINGS = {
    "class_weights": (Kind.CLASSIFICATION, Kind.TAGGING),
    "classifier_pooling": (Kind.CLASSIFICATION, Kind.MULTILABEL, Kind.REGRESSION),
    "label_smoothing": (Kind.CLASSIFICATION, Kind.TAGGING),
    "label_threshold": (Kind.MULTILABEL,),
    "long_texts": (Kind.CLASSIFICATION, Kind.MULTILABEL, Kind.REGRESSION),
    "doc_stride": (Kind.CLASSIFICATION, Kind.MULTILABEL, Kind.REGRESSION, Kind.QUESTION_ANSWERING),
    "pooling": (Kind.SENTENCE_EMBEDDINGS,), "temperature": (Kind.SENTENCE_EMBEDDINGS,)}
"""Setting of `TaskConfig` -> the kinds of tasks that have it; all have the others."""
HEAD_NAME = "head"
"""Prefix of the names of a head's weights."""
RowResults = Mapping[str, np.ndarray]
"""The objective's outputs for one row."""
Results = Sequence[RowResults]
Baseline = tuple[str, Mapping[str, float]]
"""Name and scores of a constant prediction."""
Record = Mapping[str, Any]
"""An example's prediction: "key", "prediction" and others; plain values, or a vector of NumPy."""
Formatter = Callable[[Sequence[Record]], str | bytes]
Outputs = Mapping[str, tf.Tensor]
"""Outputs of an exported model, by name."""


class Scored(NamedTuple):
    """Predictions of all examples in their order, and scores if the truth is known."""

    records: Sequence[Record]
    scores: Mapping[str, float]


class Split(NamedTuple):
    """Encoded examples."""

    rows: list[Row]
    score: Callable[[Results, float | None], Scored]
    """Takes the results of every row, and the threshold of "no answer" (None searches one)."""
    lengths: np.ndarray
    """Tokens of every text, or of every word for taggers, before it was cut; int32."""
    limit: int
    """Tokens that remain of longer ones; the next fields are words of the note on these."""
    what: str = "rows"
    outcome: str = "were cut"
    setting: str = "--max_seq_length"

    @property
    def notes(self) -> list[str]:
        """Returns what was cut to fit the rows."""
        return cut_notes(self.lengths, self.limit, self.setting, self.what, self.outcome)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HuggingFaceHead:
    """A head of a class in transformers, which `formats/hugging_face_heads.py` converts."""

    architecture: str
    layers: Mapping[str, tuple[str, ...]]
    """Dense layer of that class -> the layers of this package's head that it equals; the outputs of
    several are concatenated. Only the last entry has no GELU after it."""
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Settings of fine-tuning that create exactly these layers."""
    problem_type: str | None = None
    """Value in config.json that distinguishes kinds of one architecture."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedNetwork:
    """A fine-tuned network inside an exported graph; its head's variables are float32."""

    encoder: InferenceEncoder | Encoder
    head: tf_keras.layers.Layer
    row_encoder: RowEncoder
    spec: TaskSpec
    config: TaskConfig

    def hidden(self, tokens: Tokens) -> tf.Tensor:
        """Returns the last hidden vectors, float32 [B, L, H]."""
        return tf.cast(self.encoder(*tokens), tf.float32)

    def first(self, tokens: Tokens) -> tf.Tensor:
        """Returns the vectors of [CLS], or the mean ones, float32 [B, H]."""
        return tf.cast(text_vectors(self.encoder, tokens, self.config), tf.float32)


def text_vectors(encoder: Any, tokens: Tokens, config: TaskConfig,
                 rng: Rng | None = None) -> tf.Tensor:
    """Returns what heads for texts read, [B, H]: vectors of [CLS], or the mean over tokens."""
    if config.classifier_pooling == "cls":
        return encoder.first(*tokens, rng)
    return pool(tf.cast(encoder(*tokens, rng), tf.float32), tokens.padding_mask, "mean")


@dataclasses.dataclass(frozen=True)
class TaskObjective(abc.ABC):
    """An objective of fine-tuning: the loss of an encoder with a head on a `RowBatch`."""

    spec: TaskSpec
    config: TaskConfig = TaskConfig()
    class_weights: tuple[float, ...] = ()
    """Factor of each label's loss; empty for equal ones."""
    hidden_layer: ClassVar[bool] = True
    """False if the head has a hidden layer above ModernBERT's encoder alone."""
    target: ClassVar[str] = ""
    """Name of the target with label indices, if there is one label for each term of the loss."""
    loss_weights: ClassVar[Mapping[str, float]] = {"loss": 1.0}
    compares_rows: ClassVar[bool] = False
    """The loss of a row depends on the other rows of its batch, which a step must not split."""

    def prepare_inputs(self, batch: RowBatch,
                       rng: Rng) -> tuple[RowBatch, Mapping[str, tf.Tensor]]:
        """Returns the batch, and the number of rows or words that its loss is averaged over."""
        del rng  # Pre-training draws masks here; fine-tuning changes no row.
        loss_mask = self.loss_mask(batch)
        if not self.class_weights:
            return batch, {"loss": count(loss_mask)}
        weights = tf.gather(tf.constant(self.class_weights), batch.targets[self.target])
        return batch, {"loss": sum_where(weights, loss_mask)}

    def label_losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Returns the cross entropy of labels int32 [...], for logits float32 [..., classes].

        With class weights and label smoothing it is the sum that PyTorch's `CrossEntropyLoss`
        divides by the sum of the labels' weights.
        """
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        smoothing = self.config.label_smoothing
        if self.class_weights:
            losses *= tf.gather(tf.constant(self.class_weights), labels)
        if smoothing:  # (1 - s) times the label's cross entropy + s times the mean of all classes'.
            weights = tf.constant(self.class_weights or [1.0] * len(self.spec.labels))
            losses = (1.0 - smoothing) * losses - smoothing * tf.reduce_mean(
                weights * tf.nn.log_softmax(logits), axis=-1)
        return losses

    def check_training(self, config: FinetuningConfig, replicas: int) -> list[str]:
        """Returns notes for the header of a run; `UserError` for settings that don't fit."""
        if config.task.hidden_layer and not (self.hidden_layer or config.model.is_modern):
            raise UserError("task.hidden_layer=true needs model.architecture=modernbert for "
                            f"--task={self.spec.name}; leave it out.")
        reads_pairs = len(self.spec.text_columns) > 1 or self.spec.kind is Kind.QUESTION_ANSWERING
        return [f"pairs differ by [SEP] alone: model.architecture={config.model.architecture} has "
                "no segments"] if config.model.is_modern and reads_pairs else []

    def loss_mask(self, batch: RowBatch) -> tf.Tensor:
        """Marks what the loss is averaged over, bool: the rows that are not padding, [B]."""
        return batch.present

    def build_head(self, config: ModelConfig, *, seed: int) -> tf_keras.layers.Layer:
        """Creates the head, with an output for every label; its weights are in `HEAD_NAME`."""
        return ScoreHead(
            HEAD_NAME, config.hidden_size, len(self.spec.labels) or 1, seed=seed,
            dropout_rate=self.config.dropout, modern=config.is_modern,
            hidden_layer=self.config.hidden_layer and (config.is_modern or self.hidden_layer))

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> TaskNetwork:
        """Creates encoder and head."""
        head = self.build_head(config, seed=seed)
        return TaskNetwork(config, head, seed=seed, policy=policy, recompute=recompute)

    @abc.abstractmethod
    def compute(self, model: TaskNetwork, inputs: RowBatch, rng: Rng,
                *, training: bool) -> LossOutput:
        """Returns losses, metrics and outputs per example of a batch, from encoder and head."""


class TaskKind(abc.ABC):
    """A kind of task: how its examples are read, encoded, learned, scored and served."""

    kind: ClassVar[Kind]
    metrics: ClassVar[tuple[str, ...]]
    objective_class: ClassVar[type[TaskObjective]]
    recipe: ClassVar[Mapping[str, Any]] = {}
    """Settings that replace those of the general recipe."""
    stdin_suffix: ClassVar[str] = ".txt"
    """File suffix that says how standard input is read."""
    hugging_face: ClassVar[HuggingFaceHead]
    inputs: ClassVar[tuple[str, ...]] = ()
    """Names of the texts that an exported model takes, if all tasks of the kind share them."""

    def read_file(self, path: Path, spec: TaskSpec, *, labelled: bool,
                  notes: list[str] | None = None) -> Iterable[Example]:
        """Reads a file; `labelled=False` makes labels optional. `UserError` for a damaged file.

        Kinds that need no other row to read a row read it when it is asked for. `notes` receives
        lines about what was detected, converted or left out.
        """
        return files.read_texts(path, spec, labelled=labelled, notes=notes)

    def read(self, paths: Sequence[Path], spec: TaskSpec, *, labelled: bool,
             notes: list[str] | None = None) -> list[Example]:
        """Reads the examples of all files; with several files, every key begins with the path."""
        if len({*paths}) < len(paths):
            raise UserError(f"{', '.join(map(str, paths))}: a file is named twice; name it once.")
        return [example if len(paths) == 1
                else dataclasses.replace(example, key=f"{path}:{example.key}") for path in paths
                for example in self.read_file(path, spec, labelled=labelled, notes=notes)]

    def read_dev(self, spec: TaskSpec, user_files: Files, notes: list[str]) -> list[Example]:
        """Reads the files to score a task's model on."""
        return self.read(user_files.dev, self.select(spec, user_files), labelled=True, notes=notes)

    def select(self, spec: TaskSpec, user_files: Files) -> TaskSpec:
        """Returns a task with the columns of the files to predict, or to score."""
        return user_files.select(spec)

    def build_spec(self, name: str, labels: tuple[str, ...] = ()) -> TaskSpec:
        """Returns a benchmark or a converted model's task of this kind."""
        return TaskSpec(name=name, kind=self.kind, labels=labels, metrics=self.metrics)

    def user_spec(self, name: str, user_files: Files) -> TaskSpec:
        """Returns a task of the user's files without labels, by default of "text" and "label"."""
        return user_files.select(dataclasses.replace(
            self.build_spec(name), label_column=TaskSpec.label_column,
            text_columns=user_files.text_columns or TaskSpec.text_columns))

    def user_task(self, name: str, user_files: Files) -> Task:
        """Returns a task of the user's files; `UserError` for damaged files or unknown labels."""
        spec = self.user_spec(name, user_files)
        # Training examples, and those to score: dev, or some that are held out.
        notes: list[str] = []
        train = self.training_examples(
            self.read(user_files.train, spec, labelled=True, notes=notes), notes)
        if not train:
            raise UserError(f"{', '.join(map(str, user_files.train))}: no row has a text.")
        dev: list[Example] = []
        if user_files.dev:  # Read as labels of training, where a file can mean several things.
            known = files.label_set(train) if self.kind in LABEL_KINDS else ()
            dev = self.read_dev(dataclasses.replace(spec, labels=known), user_files, notes)
        elif not user_files.num_folds:
            train, dev, note = files.hold_out(train)
            notes.append(note)

        # Labels or a scale, which all splits must fit.
        spec = self.fit_spec(spec, user_files, train, dev)
        if self.kind in LABEL_KINDS:
            for paths, examples in ((user_files.train, train),
                                    (user_files.dev or user_files.train, dev)):
                files.check_labels(", ".join(map(str, paths)), examples, spec.labels, notes)
            notes += notes_on(files.label_set([*train, *dev]))
        notes += files.notes_on_copies(train, dev)
        test = {"test": self.read(user_files.test, spec, labelled=False,
                                  notes=notes)} if user_files.test else {}
        return Task(spec=spec, train=train, dev={"dev": dev} if dev else {}, test=test,
                    notes=[*dict.fromkeys(notes)])

    def training_examples(self, examples: Examples, notes: list[str]) -> Examples:
        """Returns the examples to train on; `notes` receives a line on others."""
        return examples

    def fit_spec(self, spec: TaskSpec, user_files: Files, train: Examples,
                 dev: Examples) -> TaskSpec:
        """Returns the task with its labels or scale; `UserError` for labels that can't be used."""
        if self.kind not in LABEL_KINDS:
            return spec
        labels, paths = files.label_set(train if user_files.dev else [*train, *dev]), ", ".join(
            map(str, user_files.train))
        for label in labels:
            if set(map(str.strip, re.split("[,;|]", label))) & set(labels) - {label}:
                raise UserError(f"{paths}: the label {shown(label)} joins several labels. Use "
                                "--task=multilabel if a text can have several; otherwise write it "
                                "without commas, semicolons and bars.")
        if len(labels) < 2:
            raise UserError(f"{paths} has one label only, {labels[0]!r}; a classifier or tagger "
                            "needs at least two.")
        return dataclasses.replace(
            spec, labels=labels, metrics=self.build_spec(spec.name, labels).metrics)

    def example(self, spec: TaskSpec, key: str, value: Any) -> Example:
        """Returns an example to predict; `UserError` if the kind doesn't read such a value."""
        texts, count = (value,) if isinstance(value, str) else tuple(value), len(spec.text_columns)
        if len(texts) != count or not all(isinstance(text, str) for text in texts):
            raise UserError(f"the task {spec.name} reads {count} text(s) per example"
                            f"{files.PAIRS if len(texts) == 2 else ''}. Received: {shown(value)}")
        return TextExample(key=key, texts=texts)

    @abc.abstractmethod
    def baseline(self, spec: TaskSpec, train: Examples, examples: Examples) -> Baseline:
        """Returns those of, for example, the most frequent label of the training examples."""

    @abc.abstractmethod
    def encode(self, spec: TaskSpec, examples: Examples, encoder: RowEncoder,
               config: TaskConfig) -> Split:
        """Returns examples as rows, and the function that scores them."""

    def objective(self, spec: TaskSpec, config: TaskConfig) -> TaskObjective:
        """Returns the objective; `UserError` for settings that the kind doesn't have."""
        for name, kinds in KINDS_OF_SETTINGS.items():
            if self.kind not in kinds and getattr(config, name) != getattr(TaskConfig, name):
                raise UserError(f"--{name} is for --task={' or '.join(kinds)}; leave it out with "
                                f"--task={spec.name}.")
        return self.objective_class(spec, config, given_weights(config.class_weights, spec))

    def formatters(self, spec: TaskSpec) -> Mapping[str, Formatter]:
        """Returns file suffix -> function that formats predictions; the first is the default."""
        return {".jsonl": json_lines}

    def decisions(self, records: Sequence[Record]) -> Sequence[Record]:
        """Returns a record for every predicted label; "texts" holds what was labelled."""
        return records if self.kind in LABEL_KINDS else ()

    def served_inputs(self, spec: TaskSpec) -> tuple[str, ...]:
        """Returns the names of the texts that an exported model takes."""
        return self.inputs

    def served_answer(self, network: ServedNetwork, *columns: tf.Tensor) -> Outputs:
        """Maps texts, string [B] for each of `served_inputs`, to answers; by default cuts them."""
        return self.served_scores(network, network.row_encoder.encode(*columns))

    @abc.abstractmethod
    def served_scores(self, network: ServedNetwork, tokens: Tokens) -> Outputs:
        """Maps token ids to the outputs of the head, which are not decoded."""


def as_rows(batch: RowBatch,
            rng: Rng | None) -> tuple[Tokens, Rng | None]:
    """Returns the parts of all examples as rows, [B * G, L], and the `Rng` of these rows."""
    tokens = Tokens(batch.ids, batch.segment_ids, batch.padding_mask)
    if batch.ids.shape.rank == 2:
        return tokens, rng
    parts, length = dimensions(batch.ids)[1:]
    return Tokens(*(tf.reshape(values, [-1, length]) for values in tokens)), (
        None if rng is None else dataclasses.replace(rng, parts=parts))


def json_lines(records: Sequence[Record]) -> str:
    """Returns records as lines of JSON; arrays become lists of the shortest equal decimals."""
    return "".join(json.dumps(record, ensure_ascii=False, default=lambda vector: (
        vector.astype(str).astype(np.float64).tolist())) + "\n" for record in records)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns tab-separated values, lists as JSON; tabs and line ends become a space."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, *([row.get(name, "") for name in names] for row in rows)]
    return "".join("\t".join(re.sub(r"[\t\r\n]+", " ", (
        json.dumps(cell, ensure_ascii=False) if isinstance(cell, list | tuple) else str(cell)
    )) for cell in line) + "\n" for line in lines)


def sum_where(values: tf.Tensor, marked: tf.Tensor) -> tf.Tensor:
    """Returns the sum of the marked values, float32 []; `marked` is bool of their shape."""
    return tf.reduce_sum(tf.where(marked, values, 0.0))
