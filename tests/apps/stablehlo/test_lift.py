"""The exported step, run by TensorFlow's StableHLO op, has the trainer's losses and weights."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops

from electra_tf.apps.stablehlo import artefact, lift
from electra_tf.apps.stablehlo.lift import export, for_one_device, state_name, take_back
from electra_tf.checkpoints import directory, run_directory
from electra_tf.config.objectives import TwoStageConfig
from electra_tf.modeling import encoder
from electra_tf.platform.errors import UserError
from electra_tf.pretraining import training_run
from electra_tf.pretraining.setup import prepare
from electra_tf.reporting.metrics_log import MetricsLog, read_metrics
from tests import tiny_run

STEPS = 3


def run_of(records, **changes):
    return tiny_run.run_on(records, model__num_layers=1,
                           runtime__distribution_strategy="one_device", **changes)


def lifted(run, state):
    return lift.lift(for_one_device(run.config), run.objective, state, run.strategy)


@pytest.fixture(scope="module")
def exported(records):
    """A run, its state, and its lifted step."""
    run = run_of(records)
    state = tiny_run.state_of(run)
    return run, state, lifted(run, state)


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
    return {state_name(variable): variable.numpy() for variable in state.variables}


def test_the_module_computes_what_the_trainer_computes(exported):
    run, state, step = exported
    ours = tiny_run.step_function(run, state)
    theirs = caller_of(step)
    values = values_of(state)
    for batch in tiny_run.batches(run, STEPS):
        expected = ours(batch)
        results, values = theirs(batch, values)
        assert sorted(expected) == sorted(step.layout.means(results))
        for name, ratio in expected.items():
            assert results[f"{name}/sum"] == pytest.approx(float(ratio.sum), rel=1e-4)
            assert results[f"{name}/weight"] == float(ratio.weight)
    assert values["step"] == STEPS
    after = values_of(state)
    for name, value in values.items():
        np.testing.assert_allclose(value, after[name], rtol=0, atol=3e-5, err_msg=name)


def test_two_traces_are_the_same_bytes_whatever_this_machine_multiplies(records, monkeypatch):
    def module():
        run = run_of(records, training__precision="bfloat16")
        return lifted(run, tiny_run.state_of(run)).module

    found = module()
    monkeypatch.setattr(encoder, "cpu_multiplies_bfloat16",
                        lambda before=encoder.cpu_multiplies_bfloat16: not before())
    assert module() == found


def run_in(records, model_dir, **changes):
    config = for_one_device(tiny_run.config(**changes))
    return prepare(config, records, model_dir, here=False)


@pytest.fixture(scope="module")
def carried(records, tmp_path_factory):
    """A run's directory, its step, and a state of step 4 that came back."""
    place = tmp_path_factory.mktemp("carried")
    step = export(run_in(records, place / "run"), place / "step.stablehlo")
    state = artefact.read_state(place / "step.npz", step.layout)
    trained = {name: value + 4 if name == "step" else np.asarray(value + 0.5, value.dtype)
               for name, value in state.items()}
    artefact.write_state(trained, step.layout, place / "trained.npz")
    log = MetricsLog(place / "trained.jsonl")
    for number in (2, 4, 6):
        log.append({"kind": "train", "step": number, "loss": 1.0})
    return place


def test_the_exported_state_is_that_of_the_run(records, carried):
    run = run_in(records, carried / "run")
    layout = artefact.read(carried / "step.stablehlo").layout
    state = artefact.read_state(carried / "step.npz", layout)
    fresh, _, _ = training_run.restored_state(run_in(records, carried / "other"))
    values = values_of(fresh)
    for name, value in state.items():
        np.testing.assert_array_equal(value, values[name], err_msg=name)
    assert layout.reading.fingerprint == run.records.fingerprint
    assert (carried / "run" / run_directory.SETTINGS_FILE).exists()


def test_a_state_that_comes_back_is_a_checkpoint(records, carried):
    run, files = run_in(records, carried / "run"), (
        carried / "step.stablehlo", carried / "trained.npz")
    saved = take_back(run, *files)
    assert saved == directory.prefix(carried / "run" / "checkpoints", 4)
    restored, _, _ = training_run.restored_state(run)
    assert int(restored.step) == 4
    values = values_of(restored)
    layout = artefact.read(files[0]).layout
    for name, value in artefact.read_state(files[1], layout).items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
    log = read_metrics(carried / "run" / run_directory.METRICS_FILE)
    assert [record["step"] for record in log if record["kind"] == "train"] == [2, 4]
    with pytest.raises(UserError, match="is of step 4, and the run has a checkpoint of step 4"):
        take_back(run, *files)


def test_a_state_of_other_settings_and_a_run_of_two_stages_are_refused(records, carried):
    files = carried / "step.stablehlo", carried / "trained.npz"
    with pytest.raises(UserError, match="is a step of other records or settings"):
        take_back(run_in(records, carried / "new", training__seed=5), *files)
    with pytest.raises(UserError, match="holds a run with other settings"):
        take_back(run_in(records, carried / "run", optimizer__learning_rate=1.0), *files)
    run = run_in(records, carried / "third")
    run = dataclasses.replace(
        run, config=dataclasses.replace(run.config, objective=TwoStageConfig()))
    with pytest.raises(UserError, match="two_stage is two runs; export each by itself"):
        export(run, carried / "third.stablehlo")
