"""Regression: a number for a text or a pair."""

import dataclasses
import statistics
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import RowBatch
from electra_tf.modeling.electra import TaskModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.objective import Outcome
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks import files
from electra_tf.tasks.examples import Kind, TextExample
from electra_tf.tasks.files import Columns, Files
from electra_tf.tasks.kinds.classification import (
    Classification,
    TextKind,
    label_scores,
    labelled_rows,
)
from electra_tf.tasks.kinds.kind import (
    Outputs,
    RowResults,
    Scored,
    ScoreObjective,
    ServedNetwork,
    Split,
    sum_where,
)
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.rows import RowEncoder, Tokens


class Regression(TextKind):
    """The kind of task that predicts a number for a text or a pair."""

    kind = Kind.REGRESSION
    metrics = ("pearson", "spearman", "mean_squared_error")
    hugging_face = dataclasses.replace(Classification.hugging_face, problem_type="regression")

    def read(self, path: Path, columns: Columns, *, labelled: bool,
             strict: bool) -> Sequence[TextExample]:
        """Reads a table; see `files.read_texts`."""
        return files.read_texts(path, columns, numbers=True, labelled=labelled)

    def fitted(self, spec: TaskSpec, own: Files, train: Sequence[TextExample],
               dev: Sequence[TextExample]) -> TaskSpec:
        """Returns the task with the mean and the standard deviation of the training labels."""
        numbers = [example.label for example in train]
        offset, scale = statistics.fmean(numbers), statistics.pstdev(numbers)
        if scale == 0.0:
            raise UserError(f"{own.train} has one number only, {offset:g}; there is nothing to "
                            "learn.")
        return dataclasses.replace(spec, scale=scale, offset=offset)

    def encode(self, spec: TaskSpec, examples: Sequence[TextExample], encoder: RowEncoder,
               config: TaskConfig) -> Split:
        """Encodes examples with the target "label", float32, 0 if unknown."""
        rows = labelled_rows(examples, encoder, [
            np.float32(0.0 if example.label is None else example.label) for example in examples])
        return Split(rows=rows, score=lambda results, _: score(spec, examples, results))

    def objective(self, spec: TaskSpec, config: TaskConfig) -> "RegressionObjective":
        """Returns the squared error."""
        return RegressionObjective(scale=spec.scale, offset=spec.offset,
                                   dropout_rate=config.dropout, hidden_layer=config.hidden_layer)

    def served_answer(self, network: ServedNetwork, *columns: tf.Tensor) -> Outputs:
        """Answers a `score` on the task's scale."""
        return self.served_scores(network, network.texts.encode(*columns))

    def served_scores(self, network: ServedNetwork, tokens: Tokens) -> Outputs:
        """Returns `score`, float32 [B]."""
        numbers = tf.squeeze(network.head(network.first(tokens)), axis=-1)
        return {"score": numbers * network.spec.scale + network.spec.offset}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionObjective(ScoreObjective):
    """The squared error of a number, in units of its scale."""

    scale: float = 1.0
    """Divisor of the labels: 5 for STS-B, as in Google's code."""
    offset: float = 0.0
    """Subtracted from the labels before the division."""

    @property
    def outputs(self) -> int:
        """Returns 1."""
        return 1

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs "label", float32 [B]; details hold "predictions", float32 [B], on its scale."""
        scores = tf.squeeze(
            self.score_first(model, inputs, randomness, training=training), axis=-1)
        losses = tf.square(scores - (inputs.targets["label"] - self.offset) / self.scale)
        return Outcome({"loss": sum_where(losses, inputs.present)}, {},
                       {"predictions": scores * self.scale + self.offset})


def score(spec: TaskSpec, examples: Sequence[TextExample],
          results: Sequence[RowResults]) -> Scored:
    """Scores examples; results hold "predictions" [] for each."""
    predictions = np.array([float(result["predictions"]) for result in results])
    records = [{"key": example.key, "prediction": float(value)}
               for example, value in zip(examples, predictions, strict=True)]
    if any(example.label is None for example in examples):
        return Scored(records=records, scores={})
    truth = np.array([example.label for example in examples])
    return Scored(records=records, scores=label_scores(spec.metrics, truth, predictions))
