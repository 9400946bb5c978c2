"""Networks move between the formats without a difference, bit for bit."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.checkpoints import formats, shapes
from electra_tf.checkpoints.formats import Format
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.export import conversion
from electra_tf.modeling import weight_table
from electra_tf.platform.errors import UserError
from tests import tiny_encoder, tiny_networks


def require_equal_weights(first, second):
    assert first.weights.keys() == second.weights.keys()
    for name, value in first.weights.items():
        np.testing.assert_array_equal(second.weights[name], value)


def require_equal(first, second):
    require_equal_weights(first, second)
    assert first.model.discriminator == second.model.discriminator
    assert first.model.generator == second.model.generator
    assert first.model.tying == second.model.tying
    assert first.text == second.text


@pytest.mark.parametrize("tying", list(Tying))
@pytest.mark.parametrize("form", list(Format))
def test_a_format_gives_back_what_it_was_given(tmp_path, form, tying):
    networks = tiny_networks.pretrained(
        model__tying=tying, model__hidden_dropout=0.1, model__attention_dropout=0.1)
    conversion.write(networks, tmp_path / "out", form)
    assert formats.format_of(tmp_path / "out") is form
    require_equal(networks, formats.read(tmp_path / "out"))


def test_heads_that_nothing_tells_are_asked_for(networks, tmp_path):
    conversion.write_google(networks, tmp_path / "out")
    (tmp_path / "out" / "bert_config.json").unlink()
    with pytest.raises(UserError, match=r"2 layers of 32 units are no published model's.*"
                                        r"convert_checkpoint --from=.*--num_heads=HEADS"):
        formats.read(tmp_path / "out")
    assert formats.read(tmp_path / "out", num_heads=2).model.num_heads == 2


def test_the_published_models_heads_are_known():
    for hidden, layers, heads in ((256, 12, 4), (768, 12, 12), (1024, 24, 16)):
        config = ModelConfig(vocab_size=9, embedding_size=4, hidden_size=hidden, num_layers=layers,
                             num_heads=heads, intermediate_size=2, max_position_embeddings=5)
        table = weight_table.whole_encoder(config.discriminator)
        weights = {name: np.broadcast_to(np.float32(0), shape) for name, shape in table.items()}
        assert shapes.model_of_weights(weights, "theirs").num_heads == heads


@pytest.mark.parametrize("content", [b"{", b"{}", b'{"num_attention_heads": "two"}'])
def test_a_config_beside_it_that_says_nothing_is_one_line(networks, tmp_path, content):
    conversion.write_google(networks, tmp_path / "out")
    (tmp_path / "out" / "bert_config.json").write_bytes(content)
    with pytest.raises(UserError, match=r"bert_config\.json.*num_attention_heads"):
        formats.read(tmp_path / "out")


def test_a_checkpoint_of_google_may_hold_slots_and_a_step(networks, tmp_path):
    conversion.write_google(networks, tmp_path / "first")
    names = sorted(networks.weights)
    values = [networks.weights[name] for name in names]
    slots = [f"{name}/{slot}" for slot in ("adam_m", "adam_v") for name in names]
    more = [*names, *slots, "global_step"]
    tf.raw_ops.SaveV2(
        prefix=tf.constant(str(tmp_path / "second.ckpt-4")), tensor_names=tf.constant(more),
        shape_and_slices=tf.constant([""] * len(more)),
        tensors=[tf.constant(value) for value in [*values, *values, *values, np.int64(4)]])
    found = formats.read(tmp_path / "second.ckpt-4", num_heads=2,
                         vocab_file=tmp_path / "first" / "vocab.txt")
    require_equal_weights(networks, found)
    assert found.model.generator.hidden_size == 16


def test_a_damaged_checkpoint_of_google_is_one_line(networks, tmp_path):
    conversion.write_google(networks, tmp_path / "out")
    data = tmp_path / "out" / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:5000])
    with pytest.raises(UserError, match="model.ckpt can't be read: Read less bytes than requested"):
        formats.read(tmp_path / "out", num_heads=2)
    (tmp_path / "out" / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nword\n")
    with pytest.raises(UserError, match="vocab.txt.manifest.json is of another vocabulary"):
        formats.read(tmp_path / "out", num_heads=2)


@pytest.mark.parametrize("form", list(Format))
def test_weights_that_are_no_numbers_are_refused_in_every_format(networks, tmp_path, form):
    name = "electra/encoder/layer_1/output/dense/bias"
    broken = networks.weights[name].copy()
    broken[3] = np.nan
    diverged = dataclasses.replace(networks, weights=networks.weights | {name: broken})
    conversion.write(diverged, tmp_path / "out", form)
    with pytest.raises(UserError, match=f"{name} holds values that are no finite numbers"):
        formats.read(tmp_path / "out", num_heads=2 if form is Format.GOOGLE else None)


@pytest.mark.parametrize("shape", [(), (40, 16, 2)])
def test_a_checkpoint_with_weights_of_odd_shapes_is_one_line(networks, tmp_path, shape):
    names = ["electra/embeddings/word_embeddings",
             "electra/encoder/layer_0/attention/self/query/bias"]
    (tmp_path / "vocab.txt").write_bytes("".join(
        f"{token}\n" for token in networks.text.vocabulary.tokens).encode())
    tf.raw_ops.SaveV2(
        prefix=tf.constant(str(tmp_path / "model.ckpt")), tensor_names=tf.constant(names),
        shape_and_slices=tf.constant(["", ""]), tensors=[tf.zeros(shape), tf.zeros(shape)])
    with pytest.raises(UserError, match="model.ckpt"):
        formats.read(tmp_path)


@pytest.mark.parametrize("form", list(Format))
def test_a_converted_model_knows_nothing_of_how_its_weights_began(tmp_path, form):
    files = {}
    for scheme in ("normal", "neighbours"):
        run, target = tmp_path / scheme / "run", tmp_path / scheme / "out"
        tiny_encoder.write(run, initialization__scheme=scheme)
        conversion.write(formats.read(run), target, form)
        files[scheme] = {path.relative_to(target): path.read_text().replace(scheme, "")
                         for path in sorted(target.rglob("*.json"))}
    assert files["normal"].keys() == files["neighbours"].keys()
    for name, text in files["normal"].items():
        if not name.name.startswith("ckpt-"):  # A seal holds digests of the weights.
            assert files["neighbours"][name] == text, name
            assert "initialization" not in text
