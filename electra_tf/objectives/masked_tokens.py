"""The part that the objectives with a generator share: masked inputs and the generator's loss."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.modeling.corruption import Distribution, cross_entropy, distribution
from electra_tf.modeling.electra import Generator
from electra_tf.modeling.masking import Masked, Predictions
from electra_tf.modeling.randomness import Randomness
from electra_tf.objectives.objective import Ratio
from electra_tf.objectives.pretraining import Arrays


class MaskedBatch(NamedTuple):
    """A batch, and the same batch as the generator reads it."""

    original: Batch
    masked: Masked


class GeneratorOutcome(NamedTuple):
    """The generator's losses over a batch, and what its samples are drawn from."""

    losses: tf.Tensor
    """float32 [B, N], of every slot; 0 where it isn't valid."""
    softmax: Distribution
    """One distribution per slot, B * N of them."""
    best_ids: tf.Tensor
    """int32 [B, N], most likely token of every slot; zeros in training, where it's not needed."""


def run_generator(generator: Generator, inputs: MaskedBatch, randomness: Randomness | None,
                  *, training: bool) -> GeneratorOutcome:
    """Computes the masked-language-model loss (ELECTRA, section 3.1, L_MLM).

    `randomness` is for dropout in training; an evaluation also wants the most likely tokens.
    """
    predictions = inputs.masked.predictions
    logits = generator(
        inputs.masked.ids, inputs.original.segment_ids, inputs.original.valid,
        predictions.positions, randomness if training else None)
    return score_predictions(logits, predictions, training=training)


def score_predictions(logits: tf.Tensor, predictions: Predictions,
                      *, training: bool) -> GeneratorOutcome:
    """Computes the loss of logits [B * N, V] at the positions of `predictions`, [B, N]."""
    softmax = distribution(logits)
    shape = predictions.positions.shape
    losses = cross_entropy(logits, tf.reshape(predictions.original_ids, [-1]), softmax)
    weights = tf.cast(predictions.valid, tf.float32)
    best = (tf.zeros_like(predictions.original_ids) if training else tf.reshape(
        tf.argmax(logits, axis=-1, output_type=tf.int32), shape))
    return GeneratorOutcome(tf.reshape(losses, shape) * weights, softmax, best)


def filled_in(predictions: Predictions, best_ids: tf.Tensor) -> Mapping[str, tf.Tensor]:
    """Returns the details, each [B, N], that the functions below read."""
    return {"best_ids": best_ids, "predicted": predictions.valid,
            "original_ids": predictions.original_ids, "positions": predictions.positions}


def generator_accuracy(details: Arrays) -> float:
    """Returns how often the most likely token is the right one; NaN without predictions."""
    right = details["best_ids"] == details["original_ids"]
    return float(np.mean(right[details["predicted"]])) if details["predicted"].any() else np.nan


def best_written(details: Arrays) -> np.ndarray:
    """Returns "ids" int32 [M, L] with the most likely token at every selected position."""
    rows, slots = np.nonzero(details["predicted"])
    written = details["ids"].copy()
    written[rows, details["positions"][rows, slots]] = details["best_ids"][rows, slots]
    return written


def share(marked: tf.Tensor, among: tf.Tensor) -> Ratio:
    """Returns how many of `among` are marked; both bool and of one shape."""
    return Ratio(count(marked & among), count(among))


def count(marked: tf.Tensor) -> tf.Tensor:
    """Returns how many of bool [...] are true, float32 []."""
    return tf.reduce_sum(tf.cast(marked, tf.float32))
