"""Shared by the losses of all kinds of tasks.

They are to `training/step.py` what pre-training's objectives are: sums and weights, divided once
over the whole batch. Batches are `data.buckets.RowBatch`es of tensors.
"""

import abc
import dataclasses
from collections.abc import Mapping

import tensorflow as tf
import tf_keras

from electra_tf.config.model import ModelConfig
from electra_tf.data.buckets import RowBatch
from electra_tf.modeling.electra import TaskModel
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.task_heads import ScoreHead

HEAD = "head"
"""Begins the names of a head's weights."""


class TaskObjective(abc.ABC):
    """One loss named "loss", and the encoder below a head."""

    @property
    def coefficients(self) -> Mapping[str, float]:
        """The one loss counts as it is."""
        return {"loss": 1.0}

    def prepare(self, batch: RowBatch,
                randomness: Randomness) -> tuple[RowBatch, Mapping[str, tf.Tensor]]:
        """Returns the batch, and how many things its loss is averaged over."""
        del randomness  # Nothing is drawn.
        return batch, {"loss": count(self.counted(batch))}

    def counted(self, batch: RowBatch) -> tf.Tensor:
        """Marks what the loss averages over: rows, unless a subclass says otherwise."""
        return batch.present

    @abc.abstractmethod
    def build_head(self, config: ModelConfig, *, seed: int,
                   policy: str) -> tf_keras.layers.Layer:
        """Creates the head, whose weights' names begin with `HEAD`."""

    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> TaskModel:
        """Creates encoder and head."""
        head = self.build_head(config, seed=seed, policy=policy)
        return TaskModel(config, head, seed=seed, policy=policy, recompute=recompute)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScoreObjective(TaskObjective):
    """An objective whose head is dropout and a dense layer."""

    dropout_rate: float = 0.1
    """Before the dense layer."""
    hidden_layer: bool = False
    """Another one, with GELU, before it."""

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """Size of the dense layer."""

    def build_head(self, config: ModelConfig, *, seed: int,
                   policy: str) -> tf_keras.layers.Layer:
        """Creates a `ScoreHead`."""
        return ScoreHead(HEAD, config.hidden_size, self.outputs, dropout_rate=self.dropout_rate,
                         seed=seed, policy=policy, hidden_layer=self.hidden_layer)

    def score_first(self, model: TaskModel, batch: RowBatch, randomness: Randomness, *,
                    training: bool) -> tf.Tensor:
        """Returns the head's outputs for [CLS], float32 [B, outputs]; drops out in training."""
        dropout = randomness if training else None
        return model.head(model.encoder.first(
            batch.ids, batch.segment_ids, batch.valid, dropout), dropout)


def count(marked: tf.Tensor) -> tf.Tensor:
    """Returns how many of bool [...] are true, float32 []."""
    return tf.reduce_sum(tf.cast(marked, tf.float32))


def sum_where(values: tf.Tensor, marked: tf.Tensor) -> tf.Tensor:
    """Returns the sum of the marked values; the others may be anything."""
    return tf.reduce_sum(tf.where(marked, values, 0.0))
