"""The initialization with which an encoder's training began, as its run's files tell it."""

import shutil

import pytest

from electra_tf.core import storage
from electra_tf.formats import pretrained
from electra_tf.formats.run import initialization
from tests.support import tiny_encoder
from tests.support.hugging_face_files import change_json

SETTINGS = {
    "model.initializer_range": 0.0795, "initialization.scheme": "adjacent",
    "initialization.word_vectors": "random", "initialization.layers": 2,
    "initialization.position_share": 0.25,
    "initialization.position_amplitude": 1.0, "initialization.attention_gain": 3.0,
    "initialization.longest_wavelength": 64.0, "initialization.duplicate_token_heads": 0}
NORMAL = {"initialization.scheme": "normal", "model.initializer_range": 0.02}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with new weights of the initialization `SETTINGS`."""
    directory = tmp_path_factory.mktemp("runs") / "first"
    tiny_encoder.write(directory, **{
        name.replace(".", "__"): value for name, value in SETTINGS.items()})
    return directory


@pytest.mark.parametrize(("initial", "expected"), [
    ("{run}, step 7", SETTINGS), ("the generator of stage 1, step 7", NORMAL),
    ("google/electra-small-discriminator", {}), ("a/removed/run, step 9", {}),
    ("{itself}, step 7", {})])
def test_a_continued_run_has_the_initialization_of_the_first_run(run, tmp_path, initial, expected):
    assert initialization(storage.path(run)) == SETTINGS
    directory = shutil.copytree(run, tmp_path / "continued")
    change_json(directory / "settings.json", **NORMAL | {
        "initial": initial.format(run=run, itself=directory)})
    read = initialization(storage.path(directory))
    assert read == ({**SETTINGS, **NORMAL} if expected is NORMAL else expected)


def test_counted_word_vectors_are_the_file_of_the_first_run(run, tmp_path):
    counted = shutil.copytree(run, tmp_path / "counted")
    change_json(counted / "settings.json", **{"initialization.word_vectors": "cooccurrence"})
    continued = shutil.copytree(run, tmp_path / "continued")
    change_json(continued / "settings.json", initial=f"{counted}, step 7")
    for directory in (counted, continued):
        assert initialization(storage.path(directory)) == SETTINGS | {
            "initialization.word_vectors": str(counted / "word_vectors.npy")}


def test_a_converted_model_has_none(run, tmp_path):
    directory = storage.path(tmp_path / "converted")
    pretrained.write(pretrained.read(storage.path(run)), directory, pretrained.Format.RUN)
    # The file names the model that was converted, whose run still exists.
    assert initialization(directory) == SETTINGS
    change_json(tmp_path / "converted" / "settings.json", initial="owner/name")
    assert initialization(directory) == {}
