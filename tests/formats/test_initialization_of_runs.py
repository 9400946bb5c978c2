"""The initialization with which an encoder's training began, as its run's files tell it."""

import json
import shutil

import pytest

from electra_tf.core import storage
from electra_tf.formats import pretrained
from electra_tf.formats.run import initialization
from tests.support import tiny_encoder

SETTINGS = {
    "model.initializer_range": 0.0795, "initialization.scheme": "adjacent",
    "initialization.layers": 2, "initialization.position_share": 0.25,
    "initialization.position_amplitude": 1.0, "initialization.attention_gain": 3.0,
    "initialization.longest_wavelength": 64.0, "initialization.duplicate_token_heads": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with new weights of the initialization `SETTINGS`."""
    directory = tmp_path_factory.mktemp("runs") / "first"
    tiny_encoder.write(directory, **{
        name.replace(".", "__"): value for name, value in SETTINGS.items()})
    return directory


@pytest.fixture
def continued(run, tmp_path):
    """Returns a function from `initial` to what is read of a run with other settings."""
    def continued(initial):
        directory = tmp_path / "continued"
        shutil.copytree(run, directory)
        path = directory / "settings.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {
            "initial": initial, "initialization.scheme": "normal",
            "model.initializer_range": 0.02}))
        return initialization(storage.path(directory))

    return continued


def test_a_run_with_new_weights_has_its_own(run):
    assert initialization(storage.path(run)) == SETTINGS


def test_a_continued_run_has_that_of_the_first_run(run, continued):
    assert continued(f"{run}, step 7") == SETTINGS


def test_a_discriminator_of_two_stages_has_its_own(continued):
    settings = continued("the generator of stage 1, step 7")
    assert settings["initialization.scheme"] == "normal"
    assert settings["model.initializer_range"] == 0.02


@pytest.mark.parametrize("initial", [
    "google/electra-small-discriminator", "a/removed/run, step 9", "{itself}, step 7"])
def test_weights_of_an_unknown_origin_have_none(continued, tmp_path, initial):
    assert continued(initial.format(itself=tmp_path / "continued")) == {}


def test_a_converted_model_has_none(run, tmp_path):
    directory = storage.path(tmp_path / "converted")
    pretrained.write(pretrained.read(storage.path(run)), directory, pretrained.Format.RUN)
    # The file names the model that was converted, whose run still exists.
    assert initialization(directory) == SETTINGS
    path = tmp_path / "converted" / "settings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"initial": "owner/name"}))
    assert initialization(directory) == {}
