"""tf_model.h5 and pytorch_model.bin give the weights that model.safetensors gives."""

import ast
import shlex
import sys
import types
from unittest import mock

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from electra_tf.formats import pretrained
from electra_tf.formats.hugging_face_weights import read_weights
from tests.formats.hugging_face_files import use_keras
from tests.support import tiny_networks
from tests.support.refusals import refused


@pytest.fixture
def keras(networks, pair):
    use_keras(pair, networks)
    return pair


def test_unknown_weights_of_keras_are_named_with_their_file(keras):
    with h5py.File(keras / "discriminator" / "tf_model.h5", "a") as file:
        group = file["electra"]
        name = "tf_electra_for_pre_training/electra/pooler/dense/bias:0"
        group.create_dataset(name, data=np.zeros(3, np.float32))
        group.attrs["weight_names"] = [*group.attrs["weight_names"], name]
    with refused("tf_model.h5 has 1 unexpected weights: electra.pooler.dense.bias"):
        pretrained.read(keras)


@pytest.mark.parametrize("length", [0, 4000])
def test_a_file_of_keras_that_is_cut_short_is_one_line(keras, length):
    path = keras / "discriminator" / "tf_model.h5"
    path.write_bytes(path.read_bytes()[:length])
    with refused("tf_model.h5 is damaged, or no weights of Keras"):
        pretrained.read(keras)


@pytest.mark.parametrize("options", [
    {"external": [("elsewhere", 0, 400)]}, {"chunks": (50,)}, {"fillvalue": 7.0}])
def test_a_weight_that_is_not_in_the_file_is_refused(tmp_path, options):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file.attrs["layer_names"] = ["electra"]
        group = file.create_group("electra")
        group.create_dataset("model/electra/bias:0", shape=(100,), dtype="f4", **options)
        group.attrs["weight_names"] = ["model/electra/bias:0"]
    with refused("'model/electra/bias:0' is not stored whole in the file"):
        read_weights(tmp_path)


def test_pickles_are_read_by_pytorch_as_weights_only(networks, pair, monkeypatch):
    weights = {name: load_file(pair / name / "model.safetensors")
               for name in ("discriminator", "generator")}
    calls = []

    def load(file, **options):
        calls.append(options)
        attribute = "detach.return_value.float.return_value.numpy.return_value"
        return {name: mock.Mock(**{attribute: value})
                for name, value in weights[file.read().decode()].items()}

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(load=load))
    for name in weights:
        (pair / name / "model.safetensors").unlink()
        (pair / name / "pytorch_model.bin").write_bytes(name.encode())
    tiny_networks.require_equal_weights(pretrained.read(pair), networks)
    assert calls == [{"map_location": "cpu", "weights_only": True}] * 2


def test_without_pytorch_a_pickle_is_refused_with_a_conversion_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    directory = tmp_path / "it's here"
    directory.mkdir()
    (directory / "pytorch_model.bin").write_bytes(b"a pickle")
    with refused("needs PyTorch: pip install torch. Or convert") as error:
        read_weights(directory)
    *start, program = shlex.split(str(error.value).split("PyTorch is installed: ")[1])
    assert start == ["python", "-c"]
    paths = [node.value for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Constant)]
    assert {str(directory / "model.safetensors"), str(directory / "pytorch_model.bin")} < {*paths}
