"""The exported step, run by TensorFlow's StableHLO op, has the trainer's losses and weights."""

import re

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from benchmarks.accelerator import export
from electra_tf.config import pretraining
from electra_tf.config.overrides import override
from electra_tf.core.errors import UserError
from electra_tf.modeling import fused
from tests.support import sources, tiny_run

STEPS = 2


def traced(records, **changes):
    """Returns a run, its state, the concrete function of a step, and its module."""
    run = tiny_run.run_on(
        records, model__num_layers=1, runtime__distribution_strategy="one_device",
        model__hidden_dropout=0.0, model__attention_dropout=0.0, **changes)
    state = tiny_run.state_of(run)
    return run, state, *export.trace(run.config, run.objective, state, run.strategy)


@pytest.mark.parametrize("changes", [{}, {"optimizer__name": "muon"}], ids=["adam", "muon"])
def test_the_module_computes_what_the_trainer_computes(records, changes):
    run, state, function, module = traced(records, **changes)
    # Arguments are the batch and the captured variables; results the losses and new values.
    variables = {id(variable.handle): variable for variable in state.variables}
    state_variables = [variables[id(handle)] for handle in function.captured_inputs]
    names = [f"{name}/{part}" for name in sorted(function.structured_outputs)
             for part in ("sum", "weight")]
    changed = {int(result): int(argument) - 3 for argument, result in re.findall(
        r"parameter_number = (\d+) : i64\}, output_index = array<i64: (\d+)>", module)}
    specs = [tf.TensorSpec([], tf.float32)] * len(names) + [
        state_variables[changed[index]] for index in range(len(names), len(names) + len(changed))]

    @tf.function(jit_compile=True, autograph=False)
    def call(*arguments):
        return gen_xla_ops.xla_call_module(
            list(arguments), version=9, module=export.portable(module), platforms=["CPU"],
            Sout=[spec.shape for spec in specs], Tout=[spec.dtype for spec in specs])

    train = tiny_run.step_function(run, state)
    values = [variable.numpy() for variable in state_variables]
    for batch in tiny_run.batches(run, STEPS):
        expected = train(batch)
        results = call(*map(tf.constant, batch), *map(tf.constant, values))
        for index, argument in changed.items():
            values[argument] = results[index].numpy()
        results = {name: float(np.asarray(result))
                   for name, result in zip(names, results, strict=False)}
        assert len(names) == 2 * len(expected)
        for name, ratio in expected.items():
            assert results[f"{name}/sum"] == pytest.approx(float(ratio.total), rel=1e-4)
            assert results[f"{name}/weight"] == float(ratio.weight)
    for variable, value in zip(state_variables, values, strict=True):
        np.testing.assert_allclose(value, variable, rtol=0, atol=3e-5, err_msg=variable.name)
    assert any(variable.name.startswith("step") and value == STEPS
               for variable, value in zip(state_variables, values, strict=True))


def test_two_traces_are_the_same_bytes_whatever_this_machine_multiplies(records, monkeypatch):
    def module():
        return export.portable(traced(
            records, objective__name="mlm", training__precision="bfloat16")[3])

    first = module()
    monkeypatch.setattr(fused, "cpu_multiplies_bfloat16",
                        lambda before=fused.cpu_multiplies_bfloat16: not before())
    assert module() == first


def test_a_length_beyond_the_positions_is_refused():
    with pytest.raises(UserError, match="data.max_seq_length=256, but the model has .*=128"):
        export.trace_without_records(override(
            pretraining.SIZES["tiny"], {"data.max_seq_length": 256}))


def test_an_op_that_stablehlo_lacks_is_refused():
    with pytest.raises(UserError, match=r"the step has the op chlo\.lgamma, which StableHLO"):
        export.portable("module @a {\n %1 = chlo.lgamma %0 : tensor<f32>\n}")


def test_the_environment_with_jax_has_what_its_command_imports():
    text = (sources.ROOT / "requirements" / "compile.txt").read_text()
    installed = {{"absl-py": "absl"}.get(name, name.replace("-", "_"))
                 for name in re.findall(r"(?m)^([\w\-]+)==", text)}
    # Elsewhere what is imported inside functions is for paths that are addresses.
    ours, libraries = sources.closure(
        "benchmarks.accelerator.compile_for_tpu",
        inside_functions=lambda name: name.startswith("benchmarks.accelerator."))
    assert len(ours) > 5 and libraries <= installed
