"""The interface of an objective, which turns a batch into named sums and their numbers of terms.

The training step first adds up the numbers of terms, which depend on the data alone, over all
replicas. It divides every loss once by its number over the global batch, so padding and splits do
not change the result.
"""

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import tensorflow as tf
import tf_keras

from electra_tf.config.model import ModelConfig
from electra_tf.data.example import Batch
from electra_tf.modeling.rng import Rng


class WeightedMean(NamedTuple):
    """A mean before its division."""

    total: tf.Tensor  # float32 [].
    weight: tf.Tensor  # float32 [], number of terms of the sum.


Means = Mapping[str, WeightedMean]  # Name of a loss or metric -> its mean over a batch.


def fraction(marked: tf.Tensor, among: tf.Tensor) -> WeightedMean:
    """Returns the fraction of `among` that is marked; both are bool of one shape."""
    return WeightedMean(count(marked & among), count(among))


def count(marked: tf.Tensor) -> tf.Tensor:
    """Returns how many of bool [...] are true, float32 []."""
    return tf.reduce_sum(tf.cast(marked, tf.float32))


class LossOutput(NamedTuple):
    """The results of one batch."""

    loss_sums: Mapping[str, tf.Tensor]  # Name -> float32 [], summed over the batch; differentiable.
    metrics: Means  # Name -> statistics for metrics; not differentiated.
    per_example: Mapping[str, tf.Tensor]  # Name -> tensors [B, ...] for evaluation and samples.


class Objective(Protocol):
    """A function that a training step minimizes, in pre-training and in fine-tuning."""

    @abc.abstractmethod
    def build_model(self, config: ModelConfig, *, seed: int, policy: str,
                    recompute: bool = False) -> tf_keras.Model:
        """Creates the networks that the objective trains; arguments as for `PretrainingModel`."""

    @abc.abstractmethod
    def prepare_inputs(self, batch: Batch, rng: Rng) -> tuple[Any, Mapping[str, tf.Tensor]]:
        """Returns the inputs of `compute` and the number of terms, float32 [], of every loss.

        Every tensor of the inputs has B as its first dimension, so that they can be split.
        """

    @abc.abstractmethod
    def compute(self, model: tf_keras.Model, inputs: Any, rng: Rng,
                *, training: bool) -> LossOutput:
        """Runs the networks, with dropout only if `training` is True."""

    @property
    @abc.abstractmethod
    def loss_weights(self) -> Mapping[str, float]:
        """Name of every loss -> its factor in the total."""
