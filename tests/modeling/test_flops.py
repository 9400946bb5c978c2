"""The paper's counts come out; the matrix-product count is hand-computed."""

import dataclasses

import pytest

from electra_tf.config.model import EncoderConfig
from electra_tf.config.pretraining import SIZES
from electra_tf.modeling import flops, paper_flops
from electra_tf.modeling.weight_table import (
    discriminator,
    generator,
    language_model,
    whole_encoder,
)


def shape(hidden, layers, embedding=0, vocabulary=30522, **sizes):
    return EncoderConfig(
        hidden_size=hidden, num_layers=layers, embedding_size=embedding or hidden,
        vocab_size=vocabulary, max_position_embeddings=512, type_vocab_size=2, hidden_dropout=0.1,
        attention_dropout=0.1, initializer_range=0.02,
        **{"num_heads": max(hidden // 64, 1), "intermediate_size": 4 * hidden} | sizes)


def model(encoder, fraction=None):
    return language_model("model", encoder, whole_encoder(encoder), fraction=fraction)


# Printed by Google's flops_computation.py: networks, length, batch, steps, FLOPs, paper's table.
# The table's 1.4e18 for ELECTRA-Small is not what the paper's own script computes.
def electra(size):
    config = SIZES[size].model
    return discriminator(config.discriminator), generator(config)


PUBLISHED = {
    "ELECTRA-Small": (electra("small"), 128, 128, 1e6, 1.293743798272e18, None),
    "ELECTRA-Base": (electra("base"), 512, 256, 766e3, 6.424541834277683e19, 6.4e19),
    "ELECTRA-400K": (electra("large"), 512, 2048, 400e3, 7.117606040895488e20, 7.1e20),
    "BERT-Small": ([model(shape(256, 12, 128))], 128, 128, 1.45e6, 1.4187399146496e18, 1.4e18),
    "BERT-Base": ([model(shape(768, 12))], 512, 256, 1e6, 6.428335104e19, 6.4e19),
    "RoBERTa": ([model(shape(1024, 24, vocabulary=50265))], 512, 8000, 500e3, 3.187221435776e21,
                3.2e21),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_counts_are_the_references_and_round_to_the_papers_table(name):
    networks, length, batch, steps, expected, table = PUBLISHED[name]
    total = batch * length * steps * paper_flops.per_token(networks, length)
    assert total == pytest.approx(expected, rel=1e-12)
    assert table is None or float(f"{total:.1e}") == table


def test_the_parts_of_small_are_the_references():
    small = SIZES["small"].model.discriminator
    assert paper_flops.block(small, 128) == 220594816
    assert paper_flops.embedding(small, 128) == 1013006336
    assert paper_flops.inference(small, 128) == 3677281792
    heads = [dataclasses.replace(network, towers=0)
             for network in (model(small), discriminator(small))]
    assert [paper_flops.forward(network, 128) for network in heads] == [161892280.0, 17137664]


TINY = shape(4, 1, 2, vocabulary=10, num_heads=2, intermediate_size=8)


def test_matrix_products_of_a_one_layer_encoder_by_hand():
    # q, k, v, output: 4 * 2*4*4 = 128; feed-forward: 2 * 2*4*8 = 128; scores and weighted sum over
    # 3 tokens: 2 * 2*4*3 = 48; projection of the embeddings: 2*2*4 = 16.
    assert flops.encoder_products_per_token(TINY, 3) == 128 + 128 + 48 + 16
    # Equal sizes of embedding and hidden need no projection.
    assert flops.encoder_products_per_token(shape(64, 1), 1) == 2 * 12 * 64 * 64 + 4 * 64


def test_matrix_products_of_a_step_by_hand():
    # Binary head: 2*4*4 + 2*4 = 40. MLM head: 2*4*2 + 2*2*10 = 56, on half of the tokens.
    # Three times: a backward pass costs two forward passes.
    networks = discriminator(TINY), model(TINY)
    assert flops.products_per_token(networks, 3, 0.5) == 3 * (320 + 40 + 320 + 28)
    # A frozen network only runs forward, a stage only in its share of the steps, two towers read
    # the same tokens; a head may run at every position.
    frozen = dataclasses.replace(model(TINY), trained=False, share=0.25)
    assert flops.products_per_token([frozen], 3, 0.5) == 0.25 * (320 + 28)
    towers = dataclasses.replace(model(TINY, fraction=1.0), towers=2)
    assert flops.products_per_token([towers], 3, 0.5) == 3 * (320 + 48 + 56)


def test_a_wider_projection_and_a_second_attention_by_hand():
    tiny = shape(2, 1, num_heads=1, intermediate_size=4)
    plain = paper_flops.block(tiny, 3)
    # Queries, keys and values of two units more: 3 (2 x 2 + 1) 2; their scores 2 x 2 x 3.
    assert paper_flops.block(tiny, 3, projected_size=4) - plain == 3 * (30 + 12)
    # Once more projections 3 x 5 x 2, products 4 x 2 x 3, 10 for each of three scores, output
    # 5 x 2, dropout and sum 5 x 2, layer norm 5.
    assert paper_flops.block(tiny, 3, attentions=2) - plain == 3 * (30 + 24 + 30 + 10 + 10 + 5)
