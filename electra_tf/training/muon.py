"""Muon: momentum, orthogonalized, for the matrices of encoder layers (Jordan et al., 2024)."""

import re
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.optimization import OptimizerConfig
from electra_tf.core.errors import UserError
from electra_tf.modeling.fused import fused
from electra_tf.modeling.parameter_shapes import ENCODER, GENERATOR
from electra_tf.training.adam import Adam, new_slots

MOMENTUM = 0.95
NETWORKS = {"discriminator": (ENCODER,), "generator": (GENERATOR,), "both": (ENCODER, GENERATOR)}
"""First parts of the paths of the encoders that a value of `muon_networks` names."""
POLYNOMIALS = {
    "newton_schulz": ((3.4445, -4.7750, 2.0315),) * 5,
    "polar_express": ((8.093368512548258, -23.620430328824273, 17.446151749836247),
                      (3.636585554259041, -2.721926746608908, 0.5365462883273613),
                      (2.661299985777099, -1.9771545218846254, 0.452616406996401))}
"""Numbers a, b and c of each step, which maps singular values s to a s + b s^3 + c s^5.

The five steps of Jordan et al. map values from 0.002 to 1 into 0.68 to 1.21. The other three are
the best that there are for 0.01 to 1, which they map into 0.73 to 1.27 (Amsel et al., 2025,
algorithm 1)."""
_MARGIN = 1.02
"""Factor of a norm that bfloat16 rounds; polar_express diverges for singular values above 1."""


class Muon(Adam):
    """Muon for the 2-D weights of encoder layers, Adam for all other weights.

        m = 0.95 m + 0.05 g
        w -= rate * (c * orthogonal(0.95 m + 0.05 g) + decay * w)

    with c = muon_rate * 0.2 * sqrt(max(rows, columns)), so that for a muon_rate of 1 updates are
    about as large as Adam's (Liu et al., 2025, section 2.2). `orthogonal` replaces all singular
    values of a matrix by about 1.
    """

    def __init__(self, config: OptimizerConfig, variables: Sequence[tf.Variable],
                 rate_factors: Sequence[float] | None = None, *,
                 matmul_type: tf.DType = tf.float32):
        """Creates one slot per matrix of Muon's, which are multiplied as `matmul_type`.

        Other arguments are those of `Adam`. Raises `UserError` if a network has no such matrix.
        """
        # Indices of Muon's matrices, and of the weights that Adam updates.
        self._indices: list[int] = []
        for network in NETWORKS[config.muon_networks]:
            own = [index for index, variable in enumerate(variables) if re.match(
                rf"{network}/encoder/layer_\d+/.*/kernel(:0)?$", variable.name)]
            if not own:
                raise UserError(
                    f"optimizer.muon_networks={config.muon_networks}, but no layer of this model "
                    f"is trained whose path begins with {network}/encoder. With "
                    "model.tying=everything and for fine-tuning, use discriminator; for frozen "
                    "layers, optimizer.name=adam.")
            self._indices += own
        self._others = sorted(set(range(len(variables))).difference(self._indices))
        factors = list(rate_factors or [1.0] * len(variables))
        super().__init__(config, [variables[index] for index in self._others],
                         [factors[index] for index in self._others])

        # A slot per matrix; matrices of one shape are updated together.
        self._matmul_type = matmul_type
        self._matrices = [variables[index] for index in self._indices]
        self._matrix_factors = np.float32([factors[index] for index in self._indices])
        self.momenta = new_slots("muon_m", self._matrices)
        shapes = [tuple(variable.shape) for variable in self._matrices]
        self._groups = [[number for number, other in enumerate(shapes) if other == shape]
                        for shape in sorted(set(shapes))]

    def apply(self, gradients: Sequence[tf.Tensor], rate: tf.Tensor, *, step: tf.Tensor,
              clip_factor: tf.Tensor, finite: tf.Tensor) -> None:
        """Updates all variables; arguments are those of `Adam.apply`."""
        super().apply([gradients[index] for index in self._others], rate, step=step,
                      clip_factor=clip_factor, finite=finite)
        gradients = [gradients[index] for index in self._indices]

        # Every replica computes the same weights from the summed gradients. As in Adam, rate 0
        # and momentum 1 change no bit.
        rate = tf.where(finite, rate, 0.0)
        clip_factor = tf.where(finite, clip_factor, 0.0)
        beta = tf.where(finite, MOMENTUM, 1.0)
        values: dict[int, tuple[tf.Tensor, tf.Tensor]] = {}
        for group in self._groups:
            momenta, directions = _accumulate(
                [gradients[number] for number in group],
                [tf.convert_to_tensor(self.momenta[number]) for number in group],
                clip_factor, beta)
            updates = orthogonalize(tf.cast(directions, self._matmul_type),
                                    self._config.muon_orthogonalization)
            rates = rate * self._matrix_factors[group]
            size = 0.2 * max(updates.shape[1:])**0.5 * self._config.muon_rate
            weights = _move([tf.convert_to_tensor(self._matrices[number]) for number in group],
                            updates, rates * size, 1.0 - rates * self._config.weight_decay)
            values |= zip(group, zip(weights, momenta, strict=True), strict=True)

        def assign_all(strategy, values):
            for number, (weight, momentum) in values.items():
                strategy.extended.update(
                    self._matrices[number], _assign,
                    args=(self.momenta[number], weight, momentum), group=False)

        tf.distribute.get_replica_context().merge_call(assign_all, args=(values,))


def orthogonalize(x: tf.Tensor, method: str) -> tf.Tensor:
    """Moves all singular values of matrices towards 1, in steps x -> (a + b G + c G^2) x.

    G is x x^T, or x^T x if that is smaller. Up to three steps of long matrices need only G, which
    becomes p G p with p = a + b G + c G^2; more would amplify the rounding of bfloat16. The
    matrices, [n, rows, columns], have Frobenius norm 1, or 0; `method` is a key of `POLYNOMIALS`.
    """
    rows, columns = x.shape[1:]
    is_tall, block = rows > columns, 3 if max(rows, columns) >= 2 * min(rows, columns) else 1
    # polar_express divides x by a bound of the largest singular value that is closer than the
    # Frobenius norm, tr(G^2)^(1/4).
    bounded = method == "polar_express"
    for first in range(0, len(POLYNOMIALS[method]), block):
        polynomials = POLYNOMIALS[method][first:first + block]
        gram = tf.matmul(x, x, transpose_a=is_tall, transpose_b=not is_tall)  # [n, a, a]
        # The product of the block's factors a + b G + c G^2, of the G that each step leaves.
        product = None
        for index, (a, b, c) in enumerate(polynomials):
            squared, bound = tf.matmul(gram, gram), tf.ones([1])  # Of the singular values, squared.
            if bounded:
                trace = tf.reduce_sum(tf.cast(tf.linalg.diag_part(squared), tf.float32), axis=-1)
                bound, bounded = _MARGIN * tf.sqrt(tf.maximum(trace, 1e-12)), False
            factor = _polynomial(gram, squared, tf.stack(
                [a * bound**-0.5, b * bound**-1.5, c * bound**-2.5]))
            product = factor if product is None else tf.matmul(factor, product)
            if index + 1 < len(polynomials):
                gram = tf.matmul(tf.matmul(factor, gram), factor)
        # All steps of the block, from the side of the smaller dimension.
        x = tf.matmul(x, product) if is_tall else tf.matmul(product, x)
    return x


@fused
def _accumulate(gradients: Sequence[tf.Tensor], momenta: Sequence[tf.Tensor],
                clip_factor: tf.Tensor, beta: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
    """Returns new momenta, and Nesterov's directions [n, rows, columns] of Frobenius norm 1."""
    gradients = [tf.math.multiply_no_nan(gradient, clip_factor) * (1.0 - beta)
                 for gradient in gradients]
    momenta = [beta * m + gradient for m, gradient in zip(momenta, gradients, strict=True)]
    directions = tf.stack([beta * m + gradient
                           for m, gradient in zip(momenta, gradients, strict=True)])
    squares = tf.reduce_sum(tf.square(directions), axis=(1, 2), keepdims=True)
    return momenta, tf.math.divide_no_nan(directions, tf.sqrt(squares))


@fused
def _polynomial(gram: tf.Tensor, squared: tf.Tensor, coefficients: tf.Tensor) -> tf.Tensor:
    """Returns a + b G + c G^2, [n, a, a]; a, b and c are float32 [3, n] or [3, 1]."""
    a, b, c = tf.unstack(coefficients[..., tf.newaxis, tf.newaxis])
    return tf.cast(a * tf.eye(gram.shape[-1]) + b * tf.cast(gram, tf.float32)
                   + c * tf.cast(squared, tf.float32), gram.dtype)


@fused
def _move(weights: Sequence[tf.Tensor], updates: tf.Tensor, rates: tf.Tensor,
          decays: tf.Tensor) -> list[tf.Tensor]:
    """Returns decay * w - rate * u of every matrix; rates and decays are float32 [n]."""
    return [decays[index] * weight - rates[index] * tf.cast(updates[index], tf.float32)
            for index, weight in enumerate(weights)]


def _assign(variable: tf.Variable, momentum_slot: tf.Variable, weight: tf.Tensor,
            momentum: tf.Tensor) -> None:
    variable.assign(weight)
    momentum_slot.assign(momentum)
