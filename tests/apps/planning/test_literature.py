"""Google's table of FLOPs comes out: its Transformer encoders, with the shapes of their papers."""

import json
import pathlib

import pytest

from electra_tf.apps.planning.workload import INFERENCE_LENGTH, Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.config.overrides import override
from electra_tf.config.sizes import SIZES
from electra_tf.modeling import flops
from electra_tf.modeling.weight_table import discriminator, language_model, whole_encoder

GOLDEN = json.loads((pathlib.Path(__file__).parent / "golden" / "flops.json").read_text())


def masked(hidden, layers, *, batch, steps, embedding=0, vocabulary=30522, length=512,
           fraction=None):
    """FLOPs of a network that predicts a fraction of the tokens; None for BERT's."""
    shape = EncoderConfig(
        hidden_size=hidden, num_layers=layers, embedding_size=embedding or hidden,
        vocab_size=vocabulary, max_position_embeddings=512, type_vocab_size=2, hidden_dropout=0.1,
        attention_dropout=0.1, initializer_range=0.02, num_heads=hidden // 64,
        intermediate_size=4 * hidden)
    network = language_model("language model", shape, whole_encoder(shape), fraction=fraction)
    return batch * length * steps * flops.paper_per_token([network], length)


def electra(size, length, **training):
    return Workload.of(override(SIZES[size], {
        f"training.{name}": value for name, value in training.items()}), length).paper_flops


@pytest.mark.parametrize(("name", "counted"), [
    ("gpt", lambda: masked(768, 12, batch=128, steps=960_800, vocabulary=40000, fraction=1.0)),
    ("bert_small", lambda: masked(256, 12, batch=128, steps=1.45e6, embedding=128, length=128)),
    ("bert_base", lambda: masked(768, 12, batch=256, steps=1e6)),
    ("bert_large", lambda: masked(1024, 24, batch=256, steps=1e6)),
    ("roberta", lambda: masked(1024, 24, batch=8000, steps=500_000, vocabulary=50265)),
    ("albert", lambda: masked(4096, 12, batch=4096, steps=1.5e6, embedding=128, vocabulary=30000)),
    ("electra_small", lambda: electra("small", 128)),
    ("electra_base", lambda: electra("base", 512)),
    ("electra_400k", lambda: electra("large", 512)),
    ("electra_1.75M", lambda: electra("large", 512, num_train_steps=1_750_000))])
def test_rows_of_googles_table_come_out(name, counted):
    assert counted() == pytest.approx(GOLDEN["train_flops"][name], rel=1e-12)


def test_an_answer_of_electra_small_comes_out():
    network = discriminator(SIZES["small"].model.discriminator)
    assert flops.paper_forward(network, INFERENCE_LENGTH) == GOLDEN["small_inference_128"]
