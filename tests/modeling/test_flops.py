"""FLOPs of matrix multiplications are those counted by hand; a device's peak is found."""

import dataclasses

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import flops
from electra_tf.modeling.flops import PEAKS, peak_flops
from electra_tf.modeling.parameter_shapes import full_encoder
from electra_tf.modeling.specs import discriminator, language_model


def shape(hidden, layers, embedding=0, vocabulary=30522, **sizes):
    return EncoderConfig(
        hidden_size=hidden, num_layers=layers, embedding_size=embedding or hidden,
        vocab_size=vocabulary, max_position_embeddings=512, type_vocab_size=2, hidden_dropout=0.1,
        attention_dropout=0.1, initializer_range=0.02,
        **{"num_heads": max(hidden // 64, 1), "intermediate_size": 4 * hidden} | sizes)


def model(encoder, fraction=None):
    return language_model("model", encoder, full_encoder(encoder), fraction=fraction)


TINY = shape(4, 1, 2, vocabulary=10, num_heads=2, intermediate_size=8)


def forward(encoder, length):
    trunk = dataclasses.replace(model(encoder), heads=(), trained=False)
    return flops.matmul_flops_per_token([trunk], length, 0)


def test_matmul_flops_of_a_one_layer_encoder_by_hand():
    # q, k, v, output: 4 * 2*4*4 = 128; feed-forward: 2 * 2*4*8 = 128; scores and weighted sum over
    # 4 tokens: 2 * 2*4*4 = 64; projection of the embeddings: 2*2*4 = 16.
    assert forward(TINY, 4) == 128 + 128 + 64 + 16
    # Equal sizes of embedding and hidden need no projection.
    assert forward(shape(64, 1), 1) == 2 * 12 * 64 * 64 + 4 * 64


def test_matmul_flops_of_a_step_by_hand():
    # Binary head: 2*4*4 + 2*4 = 40. MLM head: 2*4*2 + 2*2*10 = 56, on half of the tokens.
    # Three times: a backward pass costs two forward passes.
    networks = discriminator(TINY), model(TINY)
    assert flops.matmul_flops_per_token(networks, 4, 2) == 3 * (336 + 40 + 336 + 28)
    # A frozen network only runs forward, a stage only in its share of the steps, two towers read
    # the same tokens; a head may run at every position.
    frozen = dataclasses.replace(model(TINY), trained=False, share=0.25)
    assert flops.matmul_flops_per_token([frozen], 4, 2) == 0.25 * (336 + 28)
    towers = dataclasses.replace(model(TINY, fraction=1.0), towers=2)
    assert flops.matmul_flops_per_token([towers], 4, 2) == 3 * (336 + 64 + 56)


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
    rates = {case: peak_flops(*case) for case in TERAFLOPS}
    assert rates == {case: rate and rate * 1e12 for case, rate in TERAFLOPS.items()}
    assert not [name for name, peak in PEAKS.items()
                if peak_flops(name, "float32") != peak[0] * 1e12]
