"""Adam as BERT and ELECTRA use it, and LAMB, Adam for batches of thousands of examples."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig

DECAYED = ("kernel", "word_embeddings", "token_type_embeddings", "position_embeddings")
NOT_DECAYED = ("bias", "output_bias", "gamma", "beta")
"""Last parts of the names of weights that decay, and of those that do not."""


class Adam(tf.Module):
    """m, v = moments; w -= rate * (m / (sqrt(v) + epsilon) + decay * w).

    With bias correction, which is off by default, m and v are divided by 1 - beta^t there, t from 1
    (Kingma and Ba, 2015, algorithm 1). The decay is applied to the weight before the step, which is
    the same sum, so that the rest is TensorFlow's fused kernel without its bias corrections (powers
    of beta 0). The kernel computes 1 - beta in float32, for beta_2 = 0.999 a factor of k = 0.999987
    off. Its second moments are k times the true ones; rate and epsilon make up for it, so that
    weights follow the textbook to rounding.
    """

    def __init__(self, config: OptimizerConfig, variables: Sequence[tf.Variable],
                 rate_factors: Sequence[float] | None = None):
        """Creates two slots per variable, under the strategy's scope.

        `rate_factors` multiply the learning rate of each variable; 1 by default.
        """
        super().__init__(name="adam")
        self._config = config
        self._variables = list(variables)
        self._decays = [decays(variable.name) and config.weight_decay > 0.0
                        for variable in variables]
        # What float32 makes of 1 - beta, as a fraction of the true value.
        first, second = (float(1.0 - np.float32(beta)) / (1.0 - beta)
                         for beta in (config.beta_1, config.beta_2))
        self._kernel_rate = second**0.5 / first
        self._kernel_epsilon = config.epsilon * second**0.5
        self._rate_factors = list(rate_factors or [1.0] * len(self._variables))
        self._distinct_factors = sorted(set(self._rate_factors))
        self.first_moments, self.second_moments = (
            [tf.Variable(tf.zeros_like(variable), trainable=False,
                         name=f"{variable.name.split(':')[0]}/{kind}")
             for variable in self._variables] for kind in ("adam_m", "adam_v"))

    def apply(self, gradients: Sequence[tf.Tensor], rate: tf.Tensor, *, step: tf.Tensor,
              scale: tf.Tensor, usable: tf.Tensor) -> None:
        """Updates all variables of one replica, in a replica context.

        Gradients, one per variable, are summed over replicas and multiplied by `scale`, float32 [],
        the clipping. `rate` is float32 []; `step` integer [] counts earlier steps, those without an
        update too; if `usable`, bool [], is False, weights and slots stay exactly as they are.
        """
        # With rate 0 and betas 1 an update is the identity: no branch on the device.
        rate = tf.where(usable, rate, 0.0)
        scale = tf.where(usable, scale, 0.0)
        gradients = [tf.math.multiply_no_nan(gradient, scale) for gradient in gradients]
        tf.distribute.get_replica_context().merge_call(
            self._update_all, args=(gradients, *self._numbers(rate, step, usable)))

    def _numbers(self, rate: tf.Tensor, step: tf.Tensor, usable: tf.Tensor) -> tuple[
            Mapping[float, tf.Tensor], Mapping[float, tf.Tensor], Mapping[str, tf.Tensor]]:
        """Returns what `_update` takes: rates and decays by factor, and the kernel's inputs."""
        kernel = self._betas(usable) | {
            "beta1_power": tf.zeros([]), "beta2_power": tf.zeros([]),
            "epsilon": tf.constant(self._kernel_epsilon)}
        stretch = rate
        if self._config.bias_correction:
            first, second = self._corrections(step)
            stretch = rate * second / first
            kernel["epsilon"] = self._kernel_epsilon * second
        rates = {factor: stretch * (factor * self._kernel_rate)
                 for factor in self._distinct_factors}
        decays = {factor: rate * (factor * self._config.weight_decay)
                  for factor in self._distinct_factors}
        return rates, decays, kernel

    def _betas(self, usable: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"beta1": tf.where(usable, self._config.beta_1, 1.0),
                "beta2": tf.where(usable, self._config.beta_2, 1.0)}

    def _corrections(self, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns 1 - beta_1^t and the root of 1 - beta_2^t, float32 []."""
        t = tf.cast(step, tf.float32) + 1.0
        # expm1 keeps the digits that 1 - 0.999^t loses for small t.
        first, second = (-tf.math.expm1(t * np.log(beta)) if beta > 0.0 else tf.ones([])
                         for beta in (self._config.beta_1, self._config.beta_2))
        return first, tf.sqrt(second)

    def _update_all(self, strategy: tf.distribute.Strategy, gradients: Sequence[tf.Tensor],
                    rates: Mapping[float, tf.Tensor], decays: Mapping[float, tf.Tensor],
                    kernel: Mapping[str, tf.Tensor]) -> None:
        columns = (self._variables, self.first_moments, self.second_moments, gradients,
                   self._decays, self._rate_factors)
        for variable, first, second, gradient, decayed, factor in zip(*columns, strict=True):
            strategy.extended.update(
                variable, self._update,
                args=(first, second, gradient, rates[factor],
                      decays[factor] if decayed else None, kernel),
                group=False)

    def _update(self, variable: tf.Variable, first: tf.Variable, second: tf.Variable,
                gradient: tf.Tensor, rate: tf.Tensor, decay: tf.Tensor | None,
                kernel: Mapping[str, tf.Tensor]) -> None:
        if decay is not None:
            variable.assign((1.0 - decay) * variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle, m=first.handle, v=second.handle, lr=rate, grad=gradient, **kernel)


class Lamb(Adam):
    """u = m / (sqrt(v) + epsilon) + decay * w; w -= rate * |w| / |u| * u (You et al., 2020).

    Algorithm 2 of "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes", with
    the identity for its phi. A weight or a step of length 0 takes the plain rate, and so do
    weights that don't decay, biases and layer norms, as in the authors' code. Bias correction is
    the setting's: the ratio cancels it but for them, the decay and epsilon.
    """

    def __init__(self, config: OptimizerConfig, variables: Sequence[tf.Variable],
                 rate_factors: Sequence[float] | None = None):
        super().__init__(config, variables, rate_factors)
        # Weights that decay are adapted even if the decay is 0.
        self._decays = [decays(variable.name) for variable in variables]

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
            length, step = tf.norm(variable), tf.norm(update)
            rate *= tf.where((length > 0.0) & (step > 0.0),
                             tf.math.divide_no_nan(length, step), 1.0)
        variable.assign_sub(rate * update)


def clip_scale(gradients: Sequence[tf.Tensor], clip_norm: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns what to multiply gradients by so that their joint norm is at most `clip_norm`.

    The gradients are float32 and summed over replicas. The factor is float32 [], 1 if they are
    short enough; their norm, float32 [], without it, is returned too.
    """
    norm = tf.linalg.global_norm(gradients)
    return clip_norm / tf.maximum(norm, clip_norm), norm


def decays(path: str) -> bool:
    """Tells whether a weight is subject to weight decay, by its full name.

    Biases and layer norms, such as "electra/embeddings/LayerNorm/gamma", are not. A last part of
    the name that is in neither group is a ValueError.
    """
    last = path.split(":")[0].rsplit("/", maxsplit=1)[-1]
    if last not in DECAYED + NOT_DECAYED:
        raise ValueError(f"no weight-decay group for the weight {path!r}; known last parts: "
                         f"{', '.join(DECAYED + NOT_DECAYED)}")
    return last in DECAYED
