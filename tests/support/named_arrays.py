"""Arrays by the full names of weights: what a network has, what it gets, and comparisons."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints.weights import read_checkpoint
from electra_tf.core import storage


def of(variables: Iterable[tf.Variable]) -> dict[str, np.ndarray]:
    return {variable.name.split(":")[0]: variable.numpy() for variable in variables}


def of_run(model_dir: str | Path) -> dict[str, np.ndarray]:
    return dict(read_checkpoint(storage.path(model_dir))[0])


def assign(variables: Iterable[tf.Variable], weights: Mapping[str, np.ndarray]) -> None:
    """Sets every variable; both sides must have the same names."""
    by_name = {variable.name.split(":")[0]: variable for variable in variables}
    assert by_name.keys() == weights.keys()
    for name, variable in by_name.items():
        variable.assign(weights[name])


def assert_close(arrays: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], *,
                 rtol: float = 0.0, atol: float = 0.0) -> None:
    """Fails unless both have the same names and values; equal ones without a tolerance."""
    assert arrays.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(arrays[name], value, rtol, atol, err_msg=name)
