"""tf_model.h5 and pytorch_model.bin give the weights that model.safetensors gives."""

import ast
import json
import shlex
import sys
import types
from unittest import mock

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from electra_tf.formats import pretrained
from electra_tf.formats.hugging_face_weights import read_weights
from tests.support import tiny_networks
from tests.support.hugging_face_files import (
    INDEX,
    SHARDS,
    change_json,
    change_weights,
    split_weights,
    use_keras,
)
from tests.support.refusals import refused


def save_bytes(path, **tensors):
    """Writes a file of safetensors: the size of its header, the header in JSON, and the values."""
    header, content = {}, b""
    for name, (kind, shape, value) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape,
                        "data_offsets": [len(content), len(content) + len(value)]}
        content += value
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)


def test_bfloat16_is_the_upper_half_of_float32(tmp_path):
    upper = np.array([0x3F80, 0xBE80, 0x4049, 0x0001], "<u2")  # 1, -0.25, 3.140625, 2**-133.
    save_bytes(tmp_path / "model.safetensors", a=("BF16", [2, 2], upper.tobytes()))
    value = read_weights(tmp_path)["a"].astype(np.float32)
    np.testing.assert_array_equal(value, np.array([[1, -0.25], [3.140625, 2**-133]], np.float32))


@pytest.mark.parametrize("kind", ["F8_E4M3", "I64"])
def test_weights_of_other_types_are_refused(tmp_path, kind):
    save_bytes(tmp_path / "model.safetensors", a=(kind, [1], bytes(8 if kind == "I64" else 1)))
    with refused("int64" if kind == "I64" else kind):
        read_weights(tmp_path)


def test_position_ids_are_left_out_if_they_count_from_0(pair, checkpoint):
    name = "electra.embeddings.position_ids"
    change_weights(pair / "discriminator", lambda weights: weights | {name: np.arange(32)[None]})
    tiny_networks.require_equal_weights(pretrained.read(pair), checkpoint)
    change_weights(pair / "discriminator", lambda weights: weights | {name: np.arange(2, 34)[None]})
    with refused(name):
        pretrained.read(pair)


@pytest.mark.parametrize(("change", "words"), [
    (lambda path: (path / SHARDS[1]).unlink(), SHARDS[1]),
    (lambda path: (path / "model-00009-of-00009.safetensors").write_bytes(b""), "00009-of-00009"),
    (lambda path: (path / INDEX).unlink(), "holds none of model.safetensors, .*index.json"),
    (lambda path: change_json(path / INDEX, weight_map={"a": "../other.safetensors"}), "other"),
    (lambda path: change_weights_of(path / SHARDS[0]), "two different weights")])
def test_missing_and_extra_shards_are_named(pair, checkpoint, change, words):
    split_weights(pair / "discriminator")
    tiny_networks.require_equal_weights(pretrained.read(pair), checkpoint)
    change(pair / "discriminator")
    with refused(words):
        pretrained.read(pair)


def change_weights_of(shard):
    """Adds a weight to one shard that another one has, too, with another value."""
    name, value = next(iter(load_file(shard.parent / SHARDS[1]).items()))
    save_file(load_file(shard) | {name: value + 1}, shard)


@pytest.mark.parametrize("has_config", [True, False])
def test_an_adapter_names_its_base_and_how_to_merge_it(pair, has_config):
    directory = pair / "discriminator"
    (directory / "adapter_config.json").write_text(
        '{"peft_type": "LORA", "base_model_name_or_path": "google/electra-base-discriminator"}')
    assert pretrained.read(directory).has_discriminator
    (directory / "model.safetensors").unlink()
    if not has_config:
        (directory / "config.json").unlink()
    with refused(r"LORA.* google/electra-base-discriminator.*merge_and_unload\(\).save_pretrained"):
        pretrained.read(directory)


def test_a_pointer_of_git_lfs_is_named(pair):
    """A clone without Git LFS has such files in the place of the large ones."""
    (pair / "discriminator" / "model.safetensors").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 54236116\n")
    with refused("model.safetensors is a pointer of Git LFS.*git lfs pull"):
        pretrained.read(pair / "discriminator")


@pytest.fixture
def keras(checkpoint, pair):
    use_keras(pair, checkpoint)
    return pair


def test_copies_of_a_weight_in_a_file_of_keras_must_be_equal_and_all_weights_known(
        checkpoint, keras):
    tiny_networks.require_equal_weights(pretrained.read(keras), checkpoint)
    with h5py.File(keras / "generator" / "tf_model.h5", "a") as file:
        group = file["generator_lm_head"]
        name = next(name for name in group.attrs["weight_names"] if "word_embeddings" in name)
        group[name][0, 0] += 1.0
    with refused("two different weights 'electra.embeddings.word_embeddings.weight'"):
        pretrained.read(keras)
    with h5py.File(keras / "discriminator" / "tf_model.h5", "a") as file:
        group = file["electra"]
        name = "tf_electra_for_pre_training/electra/encoder/adapter/dense/bias:0"
        group.create_dataset(name, data=np.zeros(3, np.float32))
        group.attrs["weight_names"] = [*group.attrs["weight_names"], name]
    with refused("tf_model.h5 has 1 unexpected weight: electra.encoder.adapter.dense.bias"):
        pretrained.read(keras / "discriminator")


@pytest.mark.parametrize("length", [0, 4000])
def test_a_file_of_keras_that_is_cut_short_is_one_line(keras, length):
    path = keras / "discriminator" / "tf_model.h5"
    path.write_bytes(path.read_bytes()[:length])
    with refused("tf_model.h5 is damaged, or no weights of Keras"):
        pretrained.read(keras)


@pytest.mark.parametrize("options", [
    {"external": [("elsewhere", 0, 400)]}, {"fillvalue": 7.0}])
def test_a_weight_that_is_not_in_the_file_is_refused(tmp_path, options):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file.attrs["layer_names"] = ["electra"]
        group = file.create_group("electra")
        group.create_dataset("model/electra/bias:0", shape=(100,), dtype="f4", **options)
        group.attrs["weight_names"] = ["model/electra/bias:0"]
    with refused("'model/electra/bias:0' is not stored whole in the file"):
        read_weights(tmp_path)


def test_pickles_are_read_by_pytorch_as_weights_only(checkpoint, pair, monkeypatch):
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
    tiny_networks.require_equal_weights(pretrained.read(pair), checkpoint)
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
