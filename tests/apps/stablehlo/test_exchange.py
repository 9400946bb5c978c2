"""A run's state goes out and comes back as a checkpoint that the run goes on from."""

import dataclasses

import numpy as np
import pytest

from electra_tf.apps.stablehlo import artefact, exchange
from electra_tf.apps.stablehlo.lift import for_one_device, state_name
from electra_tf.checkpoints import directory, run_directory
from electra_tf.config.objectives import TwoStageConfig
from electra_tf.platform.errors import UserError
from electra_tf.pretraining import training_run
from electra_tf.pretraining.setup import prepare
from electra_tf.reporting.metrics_log import MetricsLog, read_metrics
from tests import tiny_records, tiny_run


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    place = tmp_path_factory.mktemp("exchange") / "records"
    tiny_records.write(place)
    return place


def run_in(records, model_dir, **changes):
    config = for_one_device(tiny_run.config(**changes))
    return prepare(config, records, model_dir, here=False)


@pytest.fixture(scope="module")
def exported(records, tmp_path_factory):
    """A run's directory, its step, and a state of step 4 that came back."""
    place = tmp_path_factory.mktemp("exported")
    step = exchange.export(run_in(records, place / "run"), place / "step.stablehlo")
    state = artefact.read_state(place / "step.npz", step.layout)
    trained = {name: value + 4 if name == "step" else np.asarray(value + 0.5, value.dtype)
               for name, value in state.items()}
    artefact.write_state(trained, step.layout, place / "trained.npz")
    log = MetricsLog(place / "trained.jsonl")
    for number in (2, 4, 6):
        log.append({"kind": "train", "step": number, "loss": 1.0})
    return place


def test_the_exported_state_is_that_of_the_run(records, exported):
    run = run_in(records, exported / "run")
    layout = artefact.read(exported / "step.stablehlo").layout
    state = artefact.read_state(exported / "step.npz", layout)
    fresh, _, _ = training_run.restored_state(run_in(records, exported / "other"))
    values = {state_name(variable): variable.numpy() for variable in fresh.variables}
    for name, value in state.items():
        np.testing.assert_array_equal(value, values[name], err_msg=name)
    assert layout.reading.fingerprint == run.records.manifest.fingerprint
    assert (exported / "run" / run_directory.SETTINGS_FILE).exists()


def test_a_state_that_comes_back_is_a_checkpoint(records, exported):
    run = run_in(records, exported / "run")
    saved = exchange.take_back(run, exported / "step.stablehlo", exported / "trained.npz")
    assert saved == directory.prefix(exported / "run" / "checkpoints", 4)
    restored, _, _ = training_run.restored_state(run)
    assert int(restored.step) == 4
    values = {state_name(variable): variable.numpy() for variable in restored.variables}
    layout = artefact.read(exported / "step.stablehlo").layout
    for name, value in artefact.read_state(exported / "trained.npz", layout).items():
        np.testing.assert_array_equal(values[name], value, err_msg=name)
    log = read_metrics(exported / "run" / run_directory.METRICS_FILE)
    assert [record["step"] for record in log if record["kind"] == "train"] == [2, 4]
    with pytest.raises(UserError, match="is of step 4, and the run has a checkpoint of step 4"):
        exchange.take_back(run, exported / "step.stablehlo", exported / "trained.npz")


def test_a_state_of_other_settings_is_refused(records, exported):
    with pytest.raises(UserError, match="is a step of other records or settings"):
        exchange.take_back(run_in(records, exported / "new", training__seed=5),
                           exported / "step.stablehlo", exported / "trained.npz")
    with pytest.raises(UserError, match="holds a run with other settings"):
        exchange.take_back(run_in(records, exported / "run", optimizer__learning_rate=1.0),
                           exported / "step.stablehlo", exported / "trained.npz")


def test_a_run_of_two_stages_is_refused(records, tmp_path):
    run = run_in(records, tmp_path / "run")
    run = dataclasses.replace(
        run, config=dataclasses.replace(run.config, objective=TwoStageConfig()))
    with pytest.raises(UserError, match="two_stage is two runs; export each by itself"):
        exchange.export(run, tmp_path / "step.stablehlo")
