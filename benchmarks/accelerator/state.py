"""Makes the initial values of an exported step, whose files have none."""

import math

import numpy as np

from electra_tf.apps.stablehlo.artefact import Layout, StateValue

_DEVIATION = 0.02
"""Standard deviation of initial weights (ELECTRA, appendix A: as BERT)."""


def initial_state(layout: Layout, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns name -> initial value of a layout's state; speed does not depend on the values.

    Kernels and tables are drawn from normal(0, 0.02), layer norms' gamma and the scale of the loss
    are ones; biases, the optimizer's moments and the step are zeros.
    """
    generator = np.random.default_rng(seed)
    return {value.name: _initial(value, generator) for value in layout.state}


def _initial(value: StateValue, generator: np.random.Generator) -> np.ndarray:
    kind = value.name.rpartition("/")[2]
    if kind in ("gamma", "loss_scale"):
        return np.ones(value.shape, value.dtype)
    if kind == "kernel" or kind.endswith("_embeddings"):
        drawn = generator.standard_normal(math.prod(value.shape), np.float32) * _DEVIATION
        return drawn.reshape(value.shape).astype(value.dtype)
    if kind in ("adam_m", "adam_v", "beta", "bias", "output_bias", "step"):
        return np.zeros(value.shape, value.dtype)
    raise ValueError(f"no rule for the initial value of {value.name}.")
