"""Directories of networks with damaged files: refused, or the very weights that stand there."""

import json
import struct

import hypothesis
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import strategies as st

from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Format
from tests.support import tiny_encoder, tiny_networks
from tests.support.attempts import REFUSED, attempt, cases
from tests.support.mutations import bytes_changed, json_changed


@pytest.fixture(scope="module")
def checkpoint():
    return tiny_networks.pretrained()


@pytest.fixture(scope="module")
def pair(checkpoint, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pair") / "theirs"
    pretrained.write(checkpoint, directory, Format.HUGGING_FACE)
    return directory


def read_changed(reader, directory, path, content):
    """What reading a directory gives while one of its files has this content."""
    original = path.read_bytes()
    path.write_bytes(content)
    try:
        return attempt(reader, lambda: pretrained.read(directory))
    finally:
        path.write_bytes(original)


def trained(model):
    """Settings without those that only further training uses, and without the heads."""
    return {name: value for name, value in vars(model).items()
            if "dropout" not in name and name not in ("initializer_range", "num_heads")}


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@hypothesis.given(data=st.data())
@cases(0.4)
def test_a_changed_config_is_refused_or_changes_training_alone(checkpoint, pair, name, data):
    path = pair / "discriminator" / name
    content = data.draw(json_changed(json.loads(path.read_bytes())))
    result = read_changed(f"Hugging Face's {name}", pair, path, content)
    if result is not REFUSED:
        expected = json.loads(content.decode("utf-8-sig"))
        tiny_networks.require_equal_weights(result, checkpoint)
        assert result.text == checkpoint.text
        assert trained(result.config) == trained(checkpoint.config)
        assert result.config.num_heads == expected.get(
            "num_attention_heads", checkpoint.config.num_heads)


@st.composite
def tensors_changed(draw, content):
    """Changes of bytes, of the header's length and of its words."""
    if draw(st.booleans()):
        return draw(bytes_changed(content))
    (length,) = struct.unpack("<Q", content[:8])
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    how = draw(st.sampled_from(["length", "header", "nan", "type"]))
    if how == "length":
        return struct.pack("<Q", draw(st.sampled_from(
            [0, 1, length - 1, length + 1, 2**40, 2**63, 2**64 - 1]))) + content[8:]
    if how == "nan":
        offset = draw(st.integers(0, len(data) // 4 - 1)) * 4
        bad = draw(st.sampled_from([np.nan, np.inf, -np.inf]))
        return content[:8 + length] + data[:offset] + np.float32(bad).tobytes() + data[offset + 4:]
    if how == "type":
        name = draw(st.sampled_from(sorted(header.keys() - {"__metadata__"})))
        header[name]["dtype"] = draw(st.sampled_from(
            ["I32", "F16", "BF16", "F64", "U8", "F8_E4M3"]))
        text = json.dumps(header).encode()
    else:
        text = draw(json_changed(header))
    return struct.pack("<Q", len(text)) + text + data


@hypothesis.given(data=st.data())
@cases(0.5)
def test_changed_safetensors_are_refused_or_read_as_finite_numbers(checkpoint, pair, data):
    path = pair / "discriminator" / "model.safetensors"
    content = data.draw(tensors_changed(path.read_bytes()))
    result = read_changed("model.safetensors", pair, path, content)
    if result is not REFUSED:
        assert all(np.isfinite(value).all() for value in result.weights.values())
        expected = safetensors.numpy.load(content)
        bias = "electra.encoder.layer.1.output.dense.bias"
        np.testing.assert_array_equal(
            result.weights["electra/encoder/layer_1/output/dense/bias"], expected[bias])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("run")
    tiny_encoder.write(directory)
    return directory, pretrained.read(directory)


@hypothesis.given(data=st.data())
@cases(0.3)
def test_a_changed_checkpoint_of_a_run_is_refused_or_the_same(run, data):
    directory, before = run
    path = data.draw(st.sampled_from(sorted((directory / "checkpoints").iterdir())))
    result = read_changed("a run's checkpoint", directory, path,
                         data.draw(bytes_changed(path.read_bytes())))
    if result is not REFUSED:
        tiny_networks.require_equal_weights(result, before)
