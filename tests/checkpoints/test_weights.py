"""Weights are assigned by name, all of a part or none."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints.weights import assign_parts, assign_weights
from tests.support.refusals import refused


@pytest.mark.parametrize(("other", "words"), [
    ({}, "lacks 1 weight: electra/b;"),
    ({"electra/b": np.zeros([3, 2], np.float32)},
     r"has 1 weight of another shape: electra/b \(3, 2\) instead of \(1, 2\);")])
def test_a_weight_that_does_not_fit_is_named_and_nothing_is_assigned(other, words):
    variables = [tf.Variable([1.0], name="electra/a"), tf.Variable([[1.0, 2.0]], name="electra/b")]
    weights = {"electra/a": np.array([2.0], np.float32)} | other
    with refused(f"a run {words}"):
        assign_weights(variables, weights, "a run")
    assert float(variables[0][0]) == 1.0


def test_a_part_is_assigned_completely_or_not_at_all():
    variables = [tf.Variable([1.0], name=name) for name in (
        "electra/a", "generator/a", "generator/b", "head/a")]
    two = {name: np.array([2.0], np.float32)
           for name in ("electra/a", "generator/a", "generator/b")}
    assert assign_parts(variables, two, "a run") == ["head"]
    assert [float(variable[0]) for variable in variables] == [2.0, 2.0, 2.0, 1.0]
    with refused("lacks 1 weight: generator/b"):
        assign_parts(variables, {name: two[name] for name in ("electra/a", "generator/a")}, "a run")
    with refused("lacks 1 weight: electra/a"):
        assign_parts(variables, {"head/a": two["electra/a"]}, "a run")
