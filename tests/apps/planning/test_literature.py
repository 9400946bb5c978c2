"""What whole runs compute: Google's table of FLOPs comes out, and other counts by hand."""

import json
import pathlib

import pytest

from electra_tf.apps.planning import paper_flops
from electra_tf.apps.planning.estimate_cost import INFERENCE_LENGTH, PUBLISHED_LENGTHS, Workload
from electra_tf.config.model import EncoderConfig
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.modeling.weight_table import discriminator, language_model, whole_encoder
from electra_tf.platform.errors import UserError

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
    return batch * length * steps * paper_flops.training_per_token([network], length)


def work(size, **changes):
    config = override(SIZES[size], {name.replace("__", "."): value
                                    for name, value in changes.items()})
    return Workload.of(config, PUBLISHED_LENGTHS[size])


@pytest.mark.parametrize(("name", "counted"), [
    ("gpt", lambda: masked(768, 12, batch=128, steps=960_800, vocabulary=40000, fraction=1.0)),
    ("bert_small", lambda: masked(256, 12, batch=128, steps=1.45e6, embedding=128, length=128)),
    ("bert_base", lambda: masked(768, 12, batch=256, steps=1e6)),
    ("bert_large", lambda: masked(1024, 24, batch=256, steps=1e6)),
    ("roberta", lambda: masked(1024, 24, batch=8000, steps=500_000, vocabulary=50265)),
    ("albert", lambda: masked(4096, 12, batch=4096, steps=1.5e6, embedding=128, vocabulary=30000)),
    ("electra_small", lambda: work("small").paper_flops),
    ("electra_base", lambda: work("base").paper_flops),
    ("electra_400k", lambda: work("large").paper_flops),
    ("electra_1.75M", lambda: work(
        "large", training__num_train_steps=1_750_000).paper_flops)])
def test_rows_of_googles_table_come_out(name, counted):
    assert counted() == pytest.approx(GOLDEN["train_flops"][name], rel=1e-12)


def test_an_answer_of_electra_small_comes_out():
    network = discriminator(SIZES["small"].model.discriminator)
    assert paper_flops.forward(network, INFERENCE_LENGTH) == GOLDEN["small_inference_128"]


def test_steps_and_objectives_are_counted():
    whole, part = work("small"), work("small", training__num_train_steps=62_500)
    assert part.paper_flops == whole.paper_flops / 16
    assert part.matmul_flops == whole.matmul_flops / 16
    bert = work("small", objective__name="mlm", training__num_train_steps=1_450_000)
    assert bert.paper_flops == pytest.approx(1.4187399146496e18, rel=1e-12)
    assert bert.matmul_flops / bert.tokens < whole.matmul_flops / whole.tokens


def test_every_objective_is_counted_and_stages_cost_their_share():
    counted = {name: work("small", objective__name=name).matmul_flops
               for name in OBJECTIVES if name != "frozen_generator"}
    # Every objective that trains the encoder over all tokens costs three forward passes of it.
    encoder = 3 * work("small").inference(128)[1] / 128 * work("small").tokens
    assert all(value > encoder for value in counted.values())
    # Half of two stages is a masked language model. The other half trains the discriminator,
    # which reads what a masked language model writes in a forward pass, a third of its step.
    second = counted["fixed_generator"] + counted["mlm"] / 3
    assert counted["two_stage"] == pytest.approx((counted["mlm"] + second) / 2)


@pytest.mark.parametrize(("changes", "length", "words"), [
    ({"objective.name": "frozen_generator"}, 128, "--set objective.generator=DIRECTORY"),
    ({}, 513, "--max_seq_length=513 is more than the model's 512 positions")])
def test_what_cant_be_counted_is_one_line(changes, length, words):
    with pytest.raises(UserError, match=words):
        Workload.of(override(SIZES["small"], changes), length)
    assert Workload.of(SIZES["small"], 512).tokens == 4 * work("small").tokens
