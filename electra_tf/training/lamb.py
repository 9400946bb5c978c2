"""LAMB, Adam for batches of thousands of examples: every weight's step is as long as the weight."""

from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig
from electra_tf.training.adam import Adam, decay_mask


class Lamb(Adam):
    """u = m / (sqrt(v) + epsilon) + decay * w; w -= rate * |w| / |u| * u (You et al., 2020).

    Algorithm 2 of "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", with
    the identity for its phi. A weight or a step of length 0 takes the plain rate, and so do
    weights that don't decay, biases and layer norms, as in the authors' code. Bias correction is
    the setting's: the ratio cancels it but for them, the decay and epsilon.
    """

    def __init__(self, config: OptimizerConfig, variables: Sequence[tf.Variable],
                 rate_factors: Sequence[float] | None = None):
        """Creates Adam's slots, with Adam's arguments."""
        super().__init__(config, variables, rate_factors)
        # Whether a weight is of those that decay counts here even if the decay is 0.
        self._decays = decay_mask(variable.name for variable in variables)

    def _numbers(self, rate: tf.Tensor, step: tf.Tensor, usable: tf.Tensor) -> tuple[
            Mapping[float, tf.Tensor], Mapping[float, tf.Tensor], Mapping[str, tf.Tensor]]:
        kernel = self._betas(usable) | {
            "correction1": tf.ones([]), "correction2": tf.ones([]),
            "epsilon": tf.constant(self._config.epsilon)}
        if self._config.bias_correction:
            kernel["correction1"], kernel["correction2"] = self._corrections(step)
        rates = {factor: rate * factor for factor in self._distinct_factors}
        return rates, dict.fromkeys(rates, tf.constant(self._config.weight_decay)), kernel

    def _update(self, variable: tf.Variable, first: tf.Variable, second: tf.Variable,
                gradient: tf.Tensor, rate: tf.Tensor, decay: tf.Tensor | None,
                kernel: Mapping[str, tf.Tensor]) -> None:
        m = first.assign(kernel["beta1"] * first + (1.0 - kernel["beta1"]) * gradient)
        v = second.assign(kernel["beta2"] * second + (1.0 - kernel["beta2"]) * tf.square(gradient))
        update = (m / kernel["correction1"]) / (
            tf.sqrt(v) / kernel["correction2"] + kernel["epsilon"])
        if decay is not None:
            update += decay * variable
            rate *= _trust_ratio(variable, update)
        variable.assign_sub(rate * update)


def _trust_ratio(weight: tf.Tensor, update: tf.Tensor) -> tf.Tensor:
    """Returns |weight| / |update|, float32 []; 1 if either is 0."""
    length, step = tf.norm(weight), tf.norm(update)
    return tf.where((length > 0.0) & (step > 0.0), tf.math.divide_no_nan(length, step), 1.0)
