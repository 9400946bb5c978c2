"""The exported step, run by TensorFlow's StableHLO op, has the trainer's losses and weights."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from benchmarks.accelerator import lift
from electra_tf.modeling import fused
from electra_tf.platform.errors import UserError
from tests.support import tiny_run

STEPS = 3


def lifted(records, **changes):
    """Returns a run, its state, and its lifted step."""
    run = tiny_run.run_on(records, model__num_layers=1,
                          runtime__distribution_strategy="one_device", **changes)
    state = tiny_run.state_of(run)
    return run, state, lift.lift(run.config, run.objective, state, run.strategy)


def caller_of(step):
    """Returns a function from a batch and a state to results by name and the new state."""
    layout = step.layout
    shapes = {index: () for index in range(len(layout.results))}
    types = dict.fromkeys(shapes, tf.float32)
    for value in layout.state:
        if value.result is not None:
            shapes[value.result], types[value.result] = value.shape, tf.as_dtype(value.dtype)

    @tf.function(jit_compile=True, autograph=False)
    def call(*arguments):
        return gen_xla_ops.xla_call_module(
            list(arguments), version=9, module=step.module, platforms=["CPU"],
            Sout=[shapes[index] for index in range(len(shapes))],
            Tout=[types[index] for index in range(len(types))])

    def named(batch, state):
        outputs = call(*map(tf.constant, batch),
                       *(tf.constant(state[value.name]) for value in layout.state))
        new = {value.name: state[value.name] if value.result is None
               else outputs[value.result].numpy() for value in layout.state}
        return {name: float(np.asarray(outputs[index]))
                for index, name in enumerate(layout.results)}, new

    return named


def values_of(state):
    return {variable.name.removesuffix(":0"): variable.numpy() for variable in state.variables}


def test_the_module_computes_what_the_trainer_computes(records):
    run, state, step = lifted(records)
    train, call = tiny_run.step_function(run, state), caller_of(step)
    values = values_of(state)
    for batch in tiny_run.batches(run, STEPS):
        expected = train(batch)
        results, values = call(batch, values)
        assert {name.rpartition("/")[0] for name in results} == set(expected)
        for name, ratio in expected.items():
            assert results[f"{name}/sum"] == pytest.approx(float(ratio.sum), rel=1e-4)
            assert results[f"{name}/weight"] == float(ratio.weight)
    assert values["step"] == STEPS
    after = values_of(state)
    for name, value in values.items():
        np.testing.assert_allclose(value, after[name], rtol=0, atol=3e-5, err_msg=name)


def test_two_traces_are_the_same_bytes_whatever_this_machine_multiplies(records, monkeypatch):
    def module():
        return lifted(records, training__precision="bfloat16")[2].module

    first = module()
    monkeypatch.setattr(fused, "cpu_multiplies_bfloat16",
                        lambda before=fused.cpu_multiplies_bfloat16: not before())
    assert module() == first


def test_an_op_that_stablehlo_lacks_is_refused():
    with pytest.raises(UserError, match=r"the step has the op chlo\.lgamma, which StableHLO"):
        lift.portable("module @a {\n %1 = chlo.lgamma %0 : tensor<f32>\n}")
