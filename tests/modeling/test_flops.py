"""The paper's counts come out; the matrix-product count is hand-computed."""

import pytest

from electra_tf.modeling.flops import (
    EncoderShape,
    matmul_electra_flops_per_token,
    matmul_encoder_flops_per_token,
    matmul_mlm_flops_per_token,
    paper_binary_head_flops,
    paper_block_flops,
    paper_electra_flops_per_token,
    paper_embedding_flops,
    paper_encoder_flops,
    paper_mlm_flops_per_token,
    paper_mlm_head_flops,
)


def shape(hidden, layers, embedding, **sizes):
    return EncoderShape(
        hidden_size=hidden, num_layers=layers, num_heads=max(hidden // 64, 1),
        intermediate_size=4 * hidden, embedding_size=embedding, **sizes)


SMALL = shape(256, 12, 128)

# Printed by Google's flops_computation.py: networks, length, batch, steps, FLOPs, paper's table.
ELECTRA = {
    "small": (SMALL, shape(64, 12, 128), 128, 128, 1e6, 1.293743798272e18, None),
    "base": (shape(768, 12, 768), shape(256, 12, 768), 512, 256, 766e3,
             6.424541834277683e19, 6.4e19),
    "large 400K": (shape(1024, 24, 1024), shape(256, 24, 1024), 512, 2048, 400e3,
                   7.117606040895488e20, 7.1e20),
    "large 1.75M": (shape(1024, 24, 1024), shape(256, 24, 1024), 512, 2048, 1.75e6,
                    3.113952642891776e21, 3.1e21),
}
MASKED_LANGUAGE_MODELS = {
    "BERT-Small": (SMALL, 128, 128, 1.45e6, 1.4187399146496e18, 1.4e18),
    "BERT-Base": (shape(768, 12, 768), 512, 256, 1e6, 6.428335104e19, 6.4e19),
    "BERT-Large": (shape(1024, 24, 1024), 512, 256, 1e6, 1.91720905883648e20, 1.9e20),
    "RoBERTa": (shape(1024, 24, 1024, vocab_size=50265), 512, 8000, 500e3,
                3.187221435776e21, 3.2e21),
}


@pytest.mark.parametrize("name", ELECTRA)
def test_electra_counts_are_the_references_and_round_to_the_papers_table(name):
    discriminator, generator, length, batch, steps, expected, table = ELECTRA[name]
    flops = batch * length * steps * paper_electra_flops_per_token(
        discriminator, generator, sequence_length=length)
    assert flops == pytest.approx(expected, rel=1e-12)
    # The table's 1.4e18 for ELECTRA-Small is not what the paper's own script computes.
    assert table is None or float(f"{flops:.1e}") == table


@pytest.mark.parametrize("name", MASKED_LANGUAGE_MODELS)
def test_masked_language_model_counts_are_the_references(name):
    encoder, length, batch, steps, expected, table = MASKED_LANGUAGE_MODELS[name]
    flops = batch * length * steps * paper_mlm_flops_per_token(encoder, sequence_length=length)
    assert flops == pytest.approx(expected, rel=1e-12)
    assert float(f"{flops:.1e}") == table


def test_the_parts_of_small_are_the_references():
    assert paper_block_flops(SMALL, 128) == 220594816
    assert paper_embedding_flops(SMALL, 128) == 1013006336
    assert paper_mlm_head_flops(SMALL, 128, 0.15625) == 161892280.0
    assert paper_binary_head_flops(SMALL, 128) == 17137664
    assert paper_encoder_flops(SMALL, 128) + 17137664 == 3677281792


def test_matrix_products_of_a_one_layer_encoder_by_hand():
    tiny = EncoderShape(
        hidden_size=4, num_layers=1, num_heads=2, intermediate_size=8, embedding_size=2,
        vocab_size=10)
    # q, k, v, output: 4 * 2*4*4 = 128; feed-forward: 2 * 2*4*8 = 128; scores and weighted sum over
    # 3 tokens: 2 * 2*4*3 = 48; projection of the embeddings: 2*2*4 = 16.
    assert matmul_encoder_flops_per_token(tiny, 3) == 128 + 128 + 48 + 16
    # Binary head: 2*4*4 + 2*4 = 40. MLM head: 2*4*2 + 2*2*10 = 56, on half of the tokens.
    # Three times: a backward pass costs two forward passes.
    assert matmul_electra_flops_per_token(
        tiny, tiny, sequence_length=3, predicted_fraction=0.5) == 3 * (320 + 40 + 320 + 28)


def test_equal_sizes_of_embedding_and_hidden_need_no_projection():
    assert matmul_encoder_flops_per_token(shape(64, 1, 64), 1) == 2 * 12 * 64 * 64 + 4 * 64


def test_impossible_shapes_are_refused_with_what_was_received():
    with pytest.raises(ValueError, match="num_layers must be at least 1. Received: 0"):
        shape(256, 0, 128)
    with pytest.raises(ValueError, match="multiple of num_heads. Received: 10 and 4"):
        EncoderShape(hidden_size=10, num_layers=1, num_heads=4, intermediate_size=8,
                     embedding_size=2)


def test_a_masked_language_models_products_by_hand():
    shape = EncoderShape(hidden_size=2, num_layers=1, num_heads=1, intermediate_size=4,
                         embedding_size=2, vocab_size=5)
    # Attention 4 x 2 x 2 weights, feed-forward 2 x 2 x 4, scores and sums 4 x 2 x 3; the head
    # 2 x 2 + 2 x 5 for a third of the tokens; two operations a weight, three passes.
    assert matmul_mlm_flops_per_token(
        shape, sequence_length=3, predicted_fraction=1 / 3) == pytest.approx(
            3 * (2 * (16 + 16) + 24 + 28 / 3))
