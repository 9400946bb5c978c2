"""The exported step is the trainer's own: the same losses, the same weights, nothing left out."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.apps.stablehlo.lift import for_one_device, lift, state_name
from electra_tf.data.pipeline import training_batches
from electra_tf.modeling import encoder
from tests import tiny_records, tiny_run
from tests.apps.stablehlo import module_in_tensorflow

STEPS = 3


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    directory = tmp_path_factory.mktemp("lift") / "records"
    tiny_records.write(directory)
    return directory


def run_of(records, **changes):
    return tiny_run.run_on(records, model__num_layers=1, runtime__cpu_parts=1,
                           runtime__distribution_strategy="one_device", **changes)


def lifted(run, state):
    return lift(for_one_device(run.config), run.objective, state, run.strategy)


@pytest.fixture(scope="module")
def exported(records):
    """A run, its state, and its lifted step."""
    run = run_of(records)
    state = tiny_run.state_of(run)
    return run, state, lifted(run, state)


def values_of(state):
    return {state_name(variable): variable.numpy() for variable in state.variables}


def batches_of(run):
    return training_batches(
        run.records, pad_id=0, seed=1, window_examples=1000, global_batch_size=8, first_step=0,
        last_step=STEPS, context=tf.distribute.InputContext())


def test_the_module_computes_what_the_trainer_computes(exported):
    run, state, step = exported
    ours = tiny_run.step_function(run, state)
    theirs = module_in_tensorflow.function_of(step)
    values = values_of(state)
    for batch in batches_of(run):
        expected = ours(batch)
        results, values = module_in_tensorflow.run(theirs, step, batch, values)
        assert sorted(expected) == sorted(step.layout.means(results))
        for name, ratio in expected.items():
            assert results[f"{name}/sum"] == pytest.approx(float(ratio.sum), rel=1e-4)
            assert results[f"{name}/weight"] == float(ratio.weight)
    assert values["step"] == STEPS
    after = values_of(state)
    for name, value in values.items():
        np.testing.assert_allclose(value, after[name], rtol=0, atol=3e-5, err_msg=name)


def test_every_weight_and_slot_goes_in_and_comes_out_changed(exported):
    _, state, step = exported
    values = {value.name: value for value in step.layout.state}
    trained = [state_name(weight) for weight in state.model.trainable_variables]
    slots = [state_name(slot) for slot in (*state.optimizer.first_moments,
                                           *state.optimizer.second_moments)]
    assert len(set(trained + slots)) == 3 * len(trained)
    results = [values[name].result for name in (*trained, *slots, "step")]
    assert None not in results and len(set(results)) == len(results)
    for variable in state.variables:
        if state_name(variable) in values:
            assert values[state_name(variable)].shape == tuple(variable.shape)


def test_batch_and_results_are_described(exported):
    layout = exported[2].layout
    assert [(value.name, value.shape, value.dtype) for value in layout.batch] == [
        ("ids", (8, 32), "int32"), ("valid", (8, 32), "bool"), ("segment_ids", (8, 32), "int32")]
    assert {"loss/sum", "loss/weight", "gradient_norm/sum"} <= set(layout.results)
    assert layout.batch_size == 8 and layout.num_train_steps == 12
    assert layout.means({name: 6.0 if name.endswith("/sum") else 3.0
                         for name in layout.results})["loss"] == 2.0


def test_two_traces_are_the_same_bytes_whatever_this_machine_multiplies(records, monkeypatch):
    def module():
        run = run_of(records, training__precision="bfloat16")
        return lifted(run, tiny_run.state_of(run)).module

    found = module()
    monkeypatch.setattr(encoder, "cpu_multiplies_bfloat16",
                        lambda before=encoder.cpu_multiplies_bfloat16: not before())
    assert module() == found
