"""Networks move between the formats without a difference, bit for bit."""

import dataclasses

import numpy as np
import pytest

from electra_tf.checkpoints import formats, google
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.export import conversion
from electra_tf.export.conversion import Format
from electra_tf.modeling import weight_table
from electra_tf.platform.errors import UserError
from tests import tiny_networks


def require_equal(first, second):
    tiny_networks.require_equal_weights(first, second)
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
    require_equal(networks, formats.read(tmp_path / "out"))


def test_heads_that_nothing_tells_are_asked_for(networks, tmp_path):
    conversion.write(networks, tmp_path / "out", Format.GOOGLE)
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
        assert google.model_of_weights(weights, "theirs").num_heads == heads


def test_a_config_beside_it_that_says_nothing_is_one_line(networks, tmp_path):
    conversion.write(networks, tmp_path / "out", Format.GOOGLE)
    (tmp_path / "out" / "bert_config.json").write_bytes(b"{}")
    with pytest.raises(UserError, match=r"bert_config\.json.*num_attention_heads"):
        formats.read(tmp_path / "out")


def test_a_damaged_checkpoint_of_google_is_one_line(networks, tmp_path):
    conversion.write(networks, tmp_path / "out", Format.GOOGLE)
    data = tmp_path / "out" / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:5000])
    with pytest.raises(UserError, match="model.ckpt can't be read: Read less bytes than requested"):
        formats.read(tmp_path / "out", num_heads=2)


def test_weights_that_are_no_numbers_are_refused(networks, tmp_path):
    name = "electra/encoder/layer_1/output/dense/bias"
    broken = networks.weights[name].copy()
    broken[3] = np.nan
    diverged = dataclasses.replace(networks, weights=networks.weights | {name: broken})
    conversion.write(diverged, tmp_path / "out", Format.RUN)
    with pytest.raises(UserError, match=f"{name} holds values that are no finite numbers"):
        formats.read(tmp_path / "out")
