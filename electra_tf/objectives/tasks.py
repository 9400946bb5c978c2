"""What fine-tuning minimises: classes, numbers, tags, spans of answers.

They are to `training/step.py` what pre-training's objectives are: sums and weights, divided once
over the whole batch. Batches are `input.buckets.RowBatch`es of tensors.
"""

import abc
import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from electra_tf.config.model import ModelConfig
from electra_tf.input.buckets import RowBatch
from electra_tf.modeling.electra import TaskModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.shapes import dimensions
from electra_tf.modeling.task_heads import (
    FEATURE_LAYERS,
    QuestionHead,
    RecurrentHead,
    ScoreHead,
    answer_positions,
    last_layers,
    vectors_at,
)
from electra_tf.objectives.objective import Outcome, Ratio

HEAD = "head"
"""Begins the names of a head's weights."""


class _TaskObjective:
    """What the four share: one loss named "loss", and the encoder below the head."""

    @property
    def coefficients(self) -> Mapping[str, float]:
        """The one loss counts as it is."""
        return {"loss": 1.0}

    def prepare(self, batch: RowBatch,
                randomness: Randomness) -> tuple[RowBatch, Mapping[str, tf.Tensor]]:
        """Returns the batch, and how many things its loss is averaged over."""
        del randomness  # Nothing is drawn.
        return batch, {"loss": _sum(self._counted(batch))}

    def _counted(self, batch: RowBatch) -> tf.Tensor:
        """Marks what the loss averages over: rows, unless a subclass says otherwise."""
        return batch.present

    def _encode(self, model: TaskModel, batch: RowBatch,
                randomness: Randomness | None) -> tf.Tensor:
        return model.encoder(batch.ids, batch.segment_ids, batch.valid, randomness)

    def _encode_first(self, model: TaskModel, batch: RowBatch,
                      randomness: Randomness | None) -> tf.Tensor:
        return model.encoder.first(batch.ids, batch.segment_ids, batch.valid, randomness)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _ScoreObjective(_TaskObjective, abc.ABC):
    """What the three have in common whose head is dropout and a dense layer."""

    dropout_rate: float = 0.1
    """Before the dense layer."""
    hidden_layer: bool = False
    """Another one, with GELU, before it."""

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """Size of the dense layer."""

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> TaskModel:
        """Creates encoder and head."""
        head = self._build_head(config, seed=seed, policy=policy)
        return TaskModel(config, head, seed=seed, policy=policy, recompute=recompute)

    def _build_head(self, config: ModelConfig, *, seed: int,
                    policy: str) -> ScoreHead | RecurrentHead:
        return ScoreHead(HEAD, config.hidden_size, self.outputs, dropout_rate=self.dropout_rate,
                         seed=seed, policy=policy, hidden_layer=self.hidden_layer)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationObjective(_ScoreObjective):
    """Cross entropy of one of several classes."""

    num_classes: int

    @property
    def outputs(self) -> int:
        """One per class."""
        return self.num_classes

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs the target "label", int32 [B]; details hold "logits", float32 [B, classes]."""
        dropout = randomness if training else None
        logits = model.head(self._encode_first(model, inputs, dropout), dropout)
        labels = inputs.targets["label"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        right = tf.argmax(logits, axis=-1, output_type=tf.int32) == labels
        return Outcome({"loss": _sum_where(losses, inputs.present)},
                       {"accuracy": Ratio(_sum(right & inputs.present), _sum(inputs.present))},
                       {"logits": logits})


@dataclasses.dataclass(frozen=True, kw_only=True)
class RegressionObjective(_ScoreObjective):
    """Squared error of a number, in units of its scale."""

    scale: float = 1.0
    """Labels are divided by it: 5 for STS-B, as in Google's code."""
    offset: float = 0.0
    """Taken off labels first."""

    @property
    def outputs(self) -> int:
        """The number alone."""
        return 1

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs "label", float32 [B]; details hold "predictions", float32 [B], on its scale."""
        dropout = randomness if training else None
        scores = model.head(self._encode_first(model, inputs, dropout), dropout)
        scores = tf.squeeze(scores, axis=-1)
        losses = tf.square(scores - (inputs.targets["label"] - self.offset) / self.scale)
        return Outcome({"loss": _sum_where(losses, inputs.present)}, {},
                       {"predictions": scores * self.scale + self.offset})


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingObjective(_ScoreObjective):
    """Cross entropy of every word's tag; words, not sentences, count alike unless asked for."""

    num_tags: int
    feature_based: bool = False
    """Read a frozen encoder's last four layers by a BiLSTM."""
    by_sentence: bool = False
    """Average over rows, whose loss is the sum over their words, as in Google's code."""

    @property
    def outputs(self) -> int:
        """One per tag."""
        return self.num_tags

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> TaskModel:
        """Creates encoder and head; the encoder is frozen where features are read."""
        model = super().build_model(config, seed=seed, policy=policy, recompute=recompute)
        model.encoder.trainable = not self.feature_based
        return model

    def _build_head(self, config: ModelConfig, *, seed: int,
                    policy: str) -> ScoreHead | RecurrentHead:
        if not self.feature_based:
            return super()._build_head(config, seed=seed, policy=policy)
        inputs = min(FEATURE_LAYERS, config.num_layers) * config.hidden_size
        return RecurrentHead(HEAD, inputs, config.hidden_size, self.num_tags,
                             dropout_rate=self.dropout_rate, seed=seed, policy=policy)

    def _counted(self, batch: RowBatch) -> tf.Tensor:
        return batch.present if self.by_sentence else self._words(batch)

    def _words(self, batch: RowBatch) -> tf.Tensor:
        return batch.targets["first_piece"] > 0  # [CLS] is at 0: no word begins there.

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs "first_piece" and "tag", int32 [B, W]; details hold "tags", int32 [B, W]."""
        dropout = randomness if training else None
        counted, places = self._words(inputs), inputs.targets["first_piece"]
        if self.feature_based:
            layers = model.encoder.all_layers(inputs.ids, inputs.segment_ids, inputs.valid)
            features = vectors_at(last_layers(layers), places)
            logits = model.head(features, counted, dropout)
        else:
            logits = model.head(vectors_at(self._encode(model, inputs, dropout), places), dropout)
        tags = tf.argmax(logits, axis=-1, output_type=tf.int32)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(inputs.targets["tag"], logits)
        right = (tags == inputs.targets["tag"]) & counted
        return Outcome({"loss": _sum_where(losses, counted)},
                       {"accuracy": Ratio(_sum(right), _sum(counted))}, {"tags": tags})


@dataclasses.dataclass(frozen=True, kw_only=True)
class QuestionObjective(_TaskObjective):
    """Mean of the cross entropies of start and end, and half of the answerability's."""

    conditioned: bool = True
    """Ends are scored given the start (`QuestionHead`)."""
    answerability: bool = True
    answerability_weight: float = 0.5
    beam_size: int = 20
    """Starts, and ends for each, that evaluation looks at."""

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> TaskModel:
        """Creates encoder and head."""
        head = QuestionHead(HEAD, config.hidden_size, conditioned=self.conditioned,
                            answerability=self.answerability, seed=seed, policy=policy)
        return TaskModel(config, head, seed=seed, policy=policy, recompute=recompute)

    def compute(self, model: TaskModel, inputs: RowBatch, randomness: Randomness,
                *, training: bool) -> Outcome:
        """Needs "start", "end", int32 [B], and "impossible", float32 [B].

        Details are the fields of `SpanBeams`, outside of training only; there is no loss then.
        """
        hidden = self._encode(model, inputs, randomness if training else None)
        allowed = answer_positions(inputs.segment_ids, inputs.valid)
        if not training:
            length = dimensions(allowed)[1]
            size = (min if isinstance(length, int) else tf.minimum)(self.beam_size, length)
            beams = model.head.beams(hidden, allowed, size)._asdict()
            return Outcome({"loss": tf.zeros([])}, {}, {
                name: part for name, part in beams.items() if part is not None})
        targets = inputs.targets
        logits = model.head(hidden, allowed, targets["start"])
        losses = (_cross_entropy(targets["start"], logits.start)
                  + _cross_entropy(targets["end"], logits.end)) / 2.0
        if logits.impossible is not None:
            losses += self.answerability_weight * tf.nn.sigmoid_cross_entropy_with_logits(
                targets["impossible"], logits.impossible)
        return Outcome({"loss": _sum_where(losses, inputs.present)}, {}, {})


def _cross_entropy(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)


def _sum(marked: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(marked, tf.float32))


def _sum_where(values: tf.Tensor, marked: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.where(marked, values, 0.0))
