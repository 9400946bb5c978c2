"""What is carried to an accelerator is whole or refused, and its state begins as a run's does."""

import dataclasses

import numpy as np
import pytest

from benchmarks.accelerator import steps
from benchmarks.accelerator.initial_state import initial_state
from electra_tf.apps.stablehlo.layout import StateValue
from electra_tf.platform.errors import UserError
from tests.benchmarks import accelerator_steps
from tests.benchmarks.workloads import BY_HAND


def begun(name, shape=(4, 3), dtype="float32"):
    value = StateValue(name=name, shape=shape, dtype=dtype, result=None)
    return initial_state(accelerator_steps.layout(state=(value,)))[name]


@pytest.mark.parametrize("name", ["a/dense/kernel", "electra/embeddings/word_embeddings"])
def test_kernels_and_tables_begin_random(name):
    drawn = begun(name, (300, 200))
    assert (drawn.shape, drawn.dtype) == ((300, 200), np.float32)
    # Of 60,000 draws the mean is within 5 of its standard errors, the deviation within 3 %.
    assert abs(drawn.mean()) < 5 * 0.02 / 60_000 ** 0.5
    assert drawn.std() == pytest.approx(0.02, rel=0.03)


@pytest.mark.parametrize(("name", "expected"), [
    ("a/LayerNorm/gamma", 1), ("loss_scale", 1), ("a/LayerNorm/beta", 0), ("a/dense/bias", 0),
    ("generator_predictions/output_bias", 0), ("a/dense/kernel/adam_m", 0),
    ("a/LayerNorm/gamma/adam_v", 0)])
def test_everything_else_begins_as_ones_or_zeros(name, expected):
    np.testing.assert_array_equal(begun(name), np.full((4, 3), expected, np.float32))


def test_the_step_begins_at_zero_and_an_unknown_tensor_is_refused():
    step = begun("step", (), "int64")
    assert (step, step.dtype) == (0, np.int64)
    with pytest.raises(ValueError, match="no rule says how a/novelty begins"):
        begun("a/novelty")


@pytest.fixture
def carried(tmp_path):
    accelerator_steps.write(tmp_path)
    return tmp_path


def test_steps_are_found_the_smallest_first_or_as_asked(carried):
    def names(*wanted):
        return [workload.case for workload in steps.found(carried, wanted)]
    assert names() == ["little", "large"]
    assert names("large", "little") == ["large", "little"]
    assert names("large") == ["large"]
    assert steps.found(carried, ["little"]) == [dataclasses.replace(BY_HAND, case="little")]


@pytest.mark.parametrize(("damage", "said"), [
    (lambda place: (place / "little.workload.json").unlink(), "little.workload.json does not ex"),
    (lambda place: (place / "little.json").unlink(), "little.json does not exist"),
    (lambda place: (place / "little.stablehlo").write_bytes(b"other"), "isn't the step that"),
    (lambda place: (place / "little.workload.json").write_text("{}"), "is damaged"),
    (lambda place: (place / "large.workload.json").replace(place / "little.workload.json"),
     "little.workload.json doesn't describe the step beside it; write it again with `python -m "
     "benchmarks.accelerator.export --cases=little`")])
def test_a_step_that_isnt_whole_is_refused(carried, damage, said):
    damage(carried)
    with pytest.raises(UserError, match=said):
        steps.found(carried, ["little"])
