"""The paper's counts come out; the matrix-product count is hand-computed; peaks are found."""

import dataclasses

import pytest

from electra_tf.config.model import EncoderConfig
from electra_tf.config.pretraining import SIZES
from electra_tf.modeling import flops
from electra_tf.modeling.flops import PEAKS, peak_flops
from electra_tf.modeling.weight_table import discriminator, generator, language_model, whole_encoder


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
    total = batch * length * steps * flops.paper_per_token(networks, length)
    assert total == pytest.approx(expected, rel=1e-12)
    assert table is None or float(f"{total:.1e}") == table


def test_the_parts_of_small_are_the_references():
    small = SIZES["small"].model.discriminator
    assert flops._paper_block(small, 128) * 128 == 220594816
    assert flops._paper_embedding(small, 128) * 128 == 1013006336
    assert flops.paper_forward(discriminator(small), 128) == 3677281792
    heads = [dataclasses.replace(network, towers=0)
             for network in (model(small), discriminator(small))]
    assert [flops.paper_forward(network, 128) for network in heads] == [161892280.0, 17137664]


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


TERAFLOPS = {
    ("NVIDIA H100 80GB HBM3", "bfloat16"): 989.4, ("NVIDIA H100 PCIe", "bfloat16"): 756.0,
    ("NVIDIA H200", "float16"): 989.4, ("NVIDIA A100-SXM4-40GB", "float32"): 156.0,
    ("NVIDIA A10G", "bfloat16"): None, ("NVIDIA A10", "bfloat16"): 125.0,
    ("NVIDIA L4", "bfloat16"): 121.0, ("NVIDIA L40S", "bfloat16"): 362.0,
    ("Tesla T4", "float16"): 65.0, ("Tesla T4", "bfloat16"): None,
    ("Tesla V100-SXM2-16GB", "float16"): 125.0, ("Tesla V100-PCIE-16GB", "float16"): 112.0,
    ("TPU_v5e", "bfloat16"): 197.0, ("", "float32"): None,
    ("Intel(R) Xeon(R) Platinum 8481C CPU", "float32"): None}


def test_a_device_name_finds_its_peak_and_every_row_can_be_found():
    found = {case: peak_flops(*case) for case in TERAFLOPS}
    assert found == {case: rate and rate * 1e12 for case, rate in TERAFLOPS.items()}
    assert not [name for name, peak in PEAKS.items()
                if peak_flops(name, "float32") != peak[0] * 1e12]
