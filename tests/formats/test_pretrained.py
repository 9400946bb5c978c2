"""Networks move between the formats without a difference, bit for bit."""

import dataclasses

import numpy as np
import pytest

from electra_tf.config.model import ModelConfig, Tying
from electra_tf.formats import google, pretrained
from electra_tf.formats.pretrained import Format
from electra_tf.modeling import weight_table
from electra_tf.platform.errors import UserError
from tests import tiny_networks


@pytest.mark.parametrize("tying", list(Tying))
@pytest.mark.parametrize("form", list(Format))
def test_a_format_gives_back_what_it_was_given(tmp_path, form, tying):
    networks = tiny_networks.pretrained(
        model__tying=tying, model__hidden_dropout=0.1, model__attention_dropout=0.1)
    pretrained.write(networks, tmp_path / "out", form)
    found = pretrained.read(tmp_path / "out")
    tiny_networks.require_equal_weights(networks, found)
    for part in ("discriminator", "generator", "tying"):
        assert getattr(found.model, part) == getattr(networks.model, part)
    assert found.text == networks.text


def test_a_checkpoint_of_google_without_a_config_or_damaged_is_one_line(networks, tmp_path):
    pretrained.write(networks, out := tmp_path / "out", Format.GOOGLE)
    (out / "bert_config.json").write_bytes(b"{}")
    with pytest.raises(UserError, match=r"bert_config\.json.*num_attention_heads"):
        pretrained.read(out)
    (out / "bert_config.json").unlink()
    with pytest.raises(UserError, match=r"2 layers of 32 units are no published model's.*"
                                        r"convert_checkpoint --from=.*--num_heads=HEADS"):
        pretrained.read(out)
    assert pretrained.read(out, num_heads=2).model.num_heads == 2
    data = out / "model.ckpt.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:5000])
    with pytest.raises(UserError, match="model.ckpt can't be read: Read less bytes than requested"):
        pretrained.read(out, num_heads=2)


def test_the_published_models_heads_are_known():
    for hidden, layers, heads in ((256, 12, 4), (768, 12, 12), (1024, 24, 16)):
        config = ModelConfig(vocab_size=9, embedding_size=4, hidden_size=hidden, num_layers=layers,
                             num_heads=heads, intermediate_size=2, max_position_embeddings=5)
        table = weight_table.whole_encoder(config.discriminator)
        weights = {name: np.broadcast_to(np.float32(0), shape) for name, shape in table.items()}
        assert google.model_of_weights(weights, "theirs").num_heads == heads


def test_weights_that_are_no_numbers_are_refused(networks, tmp_path):
    name = "electra/encoder/layer_1/output/dense/bias"
    broken = networks.weights[name].copy()
    broken[3] = np.nan
    diverged = dataclasses.replace(networks, weights=networks.weights | {name: broken})
    pretrained.write(diverged, tmp_path / "out", Format.RUN)
    with pytest.raises(UserError, match=f"{name} holds values that are no finite numbers"):
        pretrained.read(tmp_path / "out")
