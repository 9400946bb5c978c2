"""Directories of RoFormer: what has no place there, or here, is refused by name."""

import numpy as np
import pytest
from safetensors.numpy import load_file

from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from tests.parity import seeded_directories
from tests.support import tiny_networks
from tests.support.hugging_face_files import change_json, change_weights
from tests.support.refusals import refused


@pytest.fixture
def directory(tmp_path):
    seeded_directories.write(tmp_path)
    return tmp_path / "roformer_mlm"


def rotary(**changes):
    return tiny_networks.pretrained(model__positions="rotary", **changes)


def test_it_is_read_and_written_without_a_change(directory, tmp_path):
    checkpoint = pretrained.read(directory)
    pretrained.write(checkpoint, tmp_path / "out", Format.HUGGING_FACE)
    written = load_file(tmp_path / "out" / "generator" / "model.safetensors")
    read = load_file(directory / "model.safetensors")
    assert written.keys() - read.keys() == {"roformer.encoder.embed_positions.weight"}
    assert all((written[name] == value).all() for name, value in read.items())


def test_two_networks_are_read_again_without_the_discriminators_head(tmp_path, capsys):
    checkpoint = rotary()
    pretrained.write(checkpoint, tmp_path / "out", Format.HUGGING_FACE)
    assert "without that head" in capsys.readouterr().err
    again = pretrained.read(tmp_path / "out")
    assert again.has_generator and not again.has_discriminator
    assert again.config.generator == checkpoint.config.generator
    tiny_networks.require_equal_weights(
        tiny_networks.without(checkpoint, "discriminator_predictions"), again)


@pytest.mark.parametrize("entries", [
    {"rotary_value": True}, {"position_embedding_type": "relative_key"}, {"hidden_act": "relu"}],
    ids=str)
def test_another_architecture_is_refused(directory, entries):
    change_json(directory / "config.json", **entries)
    with refused(next(iter(entries))):
        pretrained.read(directory)


def test_its_own_tokenizer_is_refused(directory):
    (directory / "tokenizer_config.json").unlink()
    with refused("jieba"):
        pretrained.read(directory)


def test_other_angles_and_a_second_bias_are_refused(directory):
    change_weights(directory, lambda weights: weights | {
        "roformer.encoder.embed_positions.weight": np.ones([32, 16], np.float32)})
    with refused("embed_positions"):
        pretrained.read(directory)
    change_weights(directory, lambda weights: {
        name: value for name, value in weights.items() if "embed_positions" not in name} | {
        "cls.predictions.decoder.bias": weights["cls.predictions.bias"] + 1})
    with refused("cls.predictions.decoder.bias"):
        pretrained.read(directory)


def test_a_format_with_a_table_of_positions_refuses_it(tmp_path):
    with refused("model.positions=rotary; .* Use --to_format=hugging_face or run"):
        pretrained.write(rotary(), tmp_path / "out", Format.GOOGLE)


def test_another_base_is_refused(tmp_path):
    with refused("model.rotary_base=5000. Use --to_format=run"):
        pretrained.write(rotary(model__rotary_base=5000.0), tmp_path / "out", Format.HUGGING_FACE)
