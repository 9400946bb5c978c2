"""Adam as in BERT and ELECTRA, and LAMB for batches of thousands of examples."""

from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig

DECAYED = ("kernel", "word_embeddings", "token_type_embeddings", "position_embeddings")
NOT_DECAYED = ("bias", "output_bias", "gamma", "beta")
"""Last parts of the names of weights with weight decay, and without it."""


class Adam(tf.Module):
    """Adam with weight decay: w -= rate * (m / (sqrt(v) + epsilon) + decay * w).

    Bias correction, which is off by default, divides the moments m and v by 1 - beta^t, t from 1
    (Kingma and Ba, 2015, algorithm 1). The decay is applied to the weight first, which gives the
    same sum. TensorFlow's fused kernel does the rest, without its own bias corrections
    (beta1_power = beta2_power = 0). It computes 1 - beta_1 and 1 - beta_2 in float32, which are k1
    and k2 times the true values (k2 = 0.999987 for beta_2 = 0.999), so its moments are k1 * m and
    k2 * v. With rate * sqrt(k2) / k1 and epsilon * sqrt(k2) it computes the update of m and v.
    """

    def __init__(self, config: OptimizerConfig, variables: Sequence[tf.Variable],
                 rate_factors: Sequence[float] | None = None):
        """Creates two slots per variable, under the strategy's scope.

        `rate_factors` multiply the learning rate of each variable; 1 by default.
        """
        super().__init__(name="adam")
        self._config = config
        self._variables = list(variables)
        self._decayed = [has_weight_decay(variable.name) for variable in variables]

        # 1 - beta in float32, as a fraction of the true value.
        k1, k2 = (float(1.0 - np.float32(beta)) / (1.0 - beta)
                  for beta in (config.beta_1, config.beta_2))
        self._kernel_rate, self._kernel_epsilon = k2**0.5 / k1, config.epsilon * k2**0.5

        # Two moments per variable; learning rates are computed once for each distinct factor.
        self._rate_factors = list(rate_factors or [1.0] * len(self._variables))
        self._distinct_factors = sorted(set(self._rate_factors))
        self.first_moments, self.second_moments = (
            new_slots(kind, self._variables) for kind in ("adam_m", "adam_v"))

    def apply(self, gradients: Sequence[tf.Tensor], rate: tf.Tensor, *, step: tf.Tensor,
              clip_factor: tf.Tensor, finite: tf.Tensor) -> None:
        """Updates all variables of one replica, in a replica context.

        Gradients, one per variable, are summed over replicas, and `clip_factor` scales them; it and
        `rate` are float32 []. `step`, integer [], counts all earlier steps. If `finite`, bool [],
        is False, no bit of weights and slots changes.
        """
        # An update with rate 0 and betas 1 is the identity and needs no branch on the device.
        rate = tf.where(finite, rate, 0.0)
        clip_factor = tf.where(finite, clip_factor, 0.0)
        gradients = [tf.math.multiply_no_nan(gradient, clip_factor) for gradient in gradients]

        # The strategy updates every variable on all of its devices.
        def update_all(strategy, gradients, rates, decays, kernel):
            columns = (self._variables, self.first_moments, self.second_moments, gradients,
                       self._decayed, self._rate_factors)
            for variable, m, v, gradient, decayed, factor in zip(*columns, strict=True):
                strategy.extended.update(
                    variable, self._update,
                    args=(m, v, gradient, rates[factor],
                          decays.get(factor) if decayed else None, kernel),
                    group=False)

        tf.distribute.get_replica_context().merge_call(
            update_all, args=(gradients, *self._hyperparameters(rate, step, finite)))

    def _hyperparameters(self, rate: tf.Tensor, step: tf.Tensor, finite: tf.Tensor) -> tuple[
            Mapping[float, tf.Tensor], Mapping[float, tf.Tensor], Mapping[str, tf.Tensor]]:
        """Returns rates and decays by factor, no decays if they are 0, and the kernel's inputs.

        A decay is what `_update` takes: for Adam the factor of the weight, 1 - rate * decay.
        """
        kernel = self._betas(finite) | {
            "beta1_power": tf.zeros([]), "beta2_power": tf.zeros([]),
            "epsilon": tf.constant(self._kernel_epsilon)}
        # m / c1 / (sqrt(v) / c2 + epsilon) = c2 / c1 * m / (sqrt(v) + epsilon * c2), with c1 and
        # c2 of `_corrections`: the kernel gets another rate and epsilon.
        corrected_rate = rate
        if self._config.bias_correction:
            m_correction, v_correction = self._corrections(step)
            corrected_rate = rate * v_correction / m_correction
            kernel["epsilon"] = self._kernel_epsilon * v_correction
        rates = {factor: corrected_rate * (factor * self._kernel_rate)
                 for factor in self._distinct_factors}
        decays = {factor: 1.0 - rate * (factor * self._config.weight_decay) for factor in rates}
        return rates, decays if self._config.weight_decay else {}, kernel

    def _betas(self, finite: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"beta1": tf.where(finite, self._config.beta_1, 1.0),
                "beta2": tf.where(finite, self._config.beta_2, 1.0)}

    def _corrections(self, step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns 1 - beta_1^t and the root of 1 - beta_2^t, float32 []."""
        t = tf.cast(step, tf.float32) + 1.0
        # expm1 keeps the digits that 1 - 0.999^t loses for small t.
        m_correction, v_correction = (
            -tf.math.expm1(t * np.log(beta)) if beta > 0.0 else tf.ones([])
            for beta in (self._config.beta_1, self._config.beta_2))
        return m_correction, tf.sqrt(v_correction)

    def _update(self, variable: tf.Variable, m: tf.Variable, v: tf.Variable, gradient: tf.Tensor,
                rate: tf.Tensor, decay: tf.Tensor | None,
                kernel: Mapping[str, tf.Tensor]) -> None:
        if decay is not None:
            variable.assign(decay * variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle, m=m.handle, v=v.handle, lr=rate, grad=gradient, **kernel)


class Lamb(Adam):
    """LAMB: w -= rate * |w| / |u| * u with u = m / (sqrt(v) + epsilon) + decay * w.

    It is algorithm 2 of "Large Batch Optimization for Deep Learning: Training BERT in 76 minutes"
    (You et al., 2020), with the identity for its phi. A weight or an update of length 0 has the
    plain rate, and so have biases and layer norms, as in the authors' code. For the others the
    ratio cancels bias correction, except in the decay and epsilon.
    """

    def _hyperparameters(self, rate: tf.Tensor, step: tf.Tensor, finite: tf.Tensor) -> tuple[
            Mapping[float, tf.Tensor], Mapping[float, tf.Tensor], Mapping[str, tf.Tensor]]:
        kernel = self._betas(finite) | {
            "correction1": tf.ones([]), "correction2": tf.ones([]),
            "epsilon": tf.constant(self._config.epsilon)}
        if self._config.bias_correction:
            kernel["correction1"], kernel["correction2"] = self._corrections(step)
        rates = {factor: rate * factor for factor in self._distinct_factors}
        return rates, dict.fromkeys(rates, tf.constant(self._config.weight_decay)), kernel

    def _update(self, variable: tf.Variable, m: tf.Variable, v: tf.Variable, gradient: tf.Tensor,
                rate: tf.Tensor, decay: tf.Tensor | None,
                kernel: Mapping[str, tf.Tensor]) -> None:
        # m = beta_1 m + (1 - beta_1) g, v = beta_2 v + (1 - beta_2) g^2, and Adam's update of them.
        m = m.assign(kernel["beta1"] * m + (1.0 - kernel["beta1"]) * gradient)
        v = v.assign(kernel["beta2"] * v + (1.0 - kernel["beta2"]) * tf.square(gradient))
        update = (m / kernel["correction1"]) / (
            tf.sqrt(v) / kernel["correction2"] + kernel["epsilon"])

        # With the decay, the rate is multiplied by the weight's length over the update's.
        if decay is not None:
            update += decay * variable
            weight_norm, update_norm = tf.norm(variable), tf.norm(update)
            rate *= tf.where((weight_norm > 0.0) & (update_norm > 0.0),
                             tf.math.divide_no_nan(weight_norm, update_norm), 1.0)
        variable.assign_sub(rate * update)


def new_slots(kind: str, variables: Sequence[tf.Variable]) -> list[tf.Variable]:
    """Creates a slot of zeros for each variable, all with one name.

    Creating a variable takes TensorFlow a millisecond with a new name, 0.2 ms with an earlier one.
    """
    return [tf.Variable(tf.zeros_like(variable), trainable=False, name=f"slots/{kind}")
            for variable in variables]


def clip_factor_and_norm(gradients: Sequence[tf.Tensor],
                         clip_norm: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the factor that limits the joint norm to `clip_norm`, and that norm, float32 []."""
    norm = tf.linalg.global_norm(gradients)
    return clip_norm / tf.maximum(norm, clip_norm), norm


def has_weight_decay(path: str) -> bool:
    """Returns True if a weight, by its full name, has weight decay; `ValueError` for others."""
    last = path.split(":")[0].rsplit("/", maxsplit=1)[-1]
    if last not in DECAYED + NOT_DECAYED:
        raise ValueError(f"no weight-decay group for the weight {path!r}; known last parts: "
                         f"{', '.join(DECAYED + NOT_DECAYED)}")
    return last in DECAYED
