"""The layer between the networks: masks, samples, corrupts and labels inside the graph."""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from electra_tf.config.masking import MaskingConfig, SamplingConfig
from electra_tf.modeling.corruption import label_replaced, write_tokens
from electra_tf.modeling.masking import Masked, Predictions, TokenKinds, mask_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.sampling import Distribution, at_temperature, sample, without


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

    def __init__(self, masking: MaskingConfig, sampling: SamplingConfig, kinds: TokenKinds,
                 num_steps: int):
        """Takes the settings, what is to be known of the vocabulary, and the run's length."""
        super().__init__(name="token_replacement")
        self.masking = masking
        self.sampling = sampling
        self.kinds = kinds
        self.num_steps = num_steps

    def mask(self, ids: tf.Tensor, valid: tf.Tensor, randomness: Randomness) -> Masked:
        """Selects positions and hides most of them: the generator's input.

        Args:
            ids: int32 [B, L].
            valid: bool [B, L], False on padding.
            randomness: place of the draw.
        """
        return mask_tokens(ids, valid, self.masking, self.kinds, randomness)

    def sample(self, softmax: Distribution, predictions: Predictions, randomness: Randomness,
               *, training: bool) -> tf.Tensor:
        """Draws a token for every selected position; no gradient flows back.

        Args:
            softmax: the generator's distributions, B * N of them.
            predictions: the selected positions.
            randomness: place of the draw.
            training: whether the temperature is that of the step, not of the run's end.

        Returns:
            int32 [B, N].
        """
        shape = predictions.positions.shape
        uniforms = randomness.uniform("sampling", *shape)
        temperature = self.temperature(randomness.step) if training else self.sampling.temperature
        softmax = at_temperature(softmax, temperature)
        if self.sampling.disallow_correct:
            softmax = without(softmax, tf.reshape(predictions.original_ids, [-1]))
        drawn = sample(softmax, tf.reshape(uniforms, [-1]))
        return tf.reshape(drawn, shape)

    def temperature(self, step: tf.Tensor) -> tf.Tensor | float:
        """Returns T of step t of S: T_end + (T_0 - T_end) exp(-t / (cooling_time S)).

        After Fast-ELECTRA (Dong et al., 2024), where the temperature falls so from 2 to 1.
        """
        config = self.sampling
        if not config.initial_temperature:
            return config.temperature
        fraction = tf.cast(step, tf.float32) / (config.cooling_time * self.num_steps)
        return config.temperature + (
            config.initial_temperature - config.temperature) * tf.exp(-fraction)

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
