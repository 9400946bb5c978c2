"""The layer between the networks: masks, samples, corrupts and labels inside the graph."""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from electra_tf.config.pretraining import MaskingConfig, SamplingConfig
from electra_tf.modeling.corruption import label_replaced, write_tokens
from electra_tf.modeling.masking import Masked, Predictions, SpecialTokens, mask_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.sampling import Distribution, at_temperature, sample


class Corrupted(NamedTuple):
    """A batch as the discriminator reads it."""

    ids: tf.Tensor
    """int32 [B, L]."""
    replaced: tf.Tensor
    """bool [B, L], where the token is another one now."""


class TokenReplacement(tf_keras.layers.Layer):
    """Makes the inputs of both networks from one batch (ELECTRA, section 3.1).

    It has no weights, and every draw comes from the `Randomness` it is given.
    """

    def __init__(self, masking: MaskingConfig, sampling: SamplingConfig, special: SpecialTokens):
        """Takes the settings, and the ids that are never selected."""
        super().__init__(name="token_replacement")
        self.masking = masking
        self.sampling = sampling
        self.special = special

    def mask(self, ids: tf.Tensor, valid: tf.Tensor, randomness: Randomness) -> Masked:
        """Selects positions and hides most of them: the generator's input.

        Args:
            ids: int32 [B, L].
            valid: bool [B, L], False on padding.
            randomness: place of the draw.
        """
        return mask_tokens(ids, valid, self.masking, self.special, randomness)

    def sample(self, softmax: Distribution, randomness: Randomness,
               shape: tf.TensorShape) -> tf.Tensor:
        """Draws a token for every selected position; no gradient flows back.

        Args:
            softmax: the generator's distributions, B * N of them.
            randomness: place of the draw.
            shape: [B, N].

        Returns:
            int32 [B, N].
        """
        uniforms = randomness.uniform("sampling", *shape)
        softmax = at_temperature(softmax, self.sampling.temperature)
        drawn = sample(softmax, tf.reshape(uniforms, [-1]))
        return tf.reshape(drawn, shape)

    def call(self, ids: tf.Tensor, valid: tf.Tensor, predictions: Predictions,
             sampled: tf.Tensor) -> Corrupted:
        """Writes samples over all selected positions of the original text.

        Also over the 15 % that the generator could read: it is the sample that counts there too.

        Args:
            ids: int32 [B, L], the original tokens.
            valid: bool [B, L].
            predictions: which positions were selected.
            sampled: int32 [B, N].
        """
        corrupted = write_tokens(ids, predictions.positions, sampled, predictions.valid)
        return Corrupted(corrupted, label_replaced(ids, corrupted, valid))
