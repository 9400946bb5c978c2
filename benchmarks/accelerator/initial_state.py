"""A state to begin with, from the shapes of a layout: speed doesn't depend on the values."""

import math

import numpy as np

from electra_tf.apps.stablehlo.layout import Layout, StateValue

_DEVIATION = 0.02
"""Of weights (ELECTRA, appendix A: as BERT)."""
_SLOTS = "adam_m", "adam_v"


def initial_state(layout: Layout, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns name -> value of all of a layout's state, as a run begins.

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
    if kind in (*_SLOTS, "beta", "bias", "output_bias", "step"):
        return value.zeros()
    raise ValueError(f"no rule says how {value.name} begins.")
