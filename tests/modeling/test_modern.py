"""ModernBERT's layers: blocks equal masks, sizes, refusals, and what answers equals what trains."""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.config.model import (
    MODEL_SIZES,
    Architecture,
    EncoderConfig,
    InitializationConfig,
    Positions,
    Tying,
)
from electra_tf.config.pretraining import pretraining_config
from electra_tf.finetuning.loop import rate_factors
from electra_tf.modeling import flops, modern, parameter_shapes, specs
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.fused import geglu, inference_mode
from electra_tf.modeling.inference import inference_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.modeling.rng import Rng
from electra_tf.pretraining import init_from
from tests.support import named_arrays, tiny_run
from tests.support.padded_rows import random_encoder, random_rows
from tests.support.refusals import refused

CONFIG = EncoderConfig(
    architecture=Architecture.MODERNBERT, positions=Positions.ROTARY, vocab_size=60,
    embedding_size=16, hidden_size=32, num_layers=4, num_heads=4, intermediate_size=48,
    max_position_embeddings=64,
    attention_window=8, hidden_dropout=0.1, attention_dropout=0.1)
LENGTHS = [37, 1, 20, 3]
SMALL = {"model__architecture": "modernbert", "model__vocab_size": 40}


@functools.cache
def encoder(policy="float32", **changes):
    return random_encoder(dataclasses.replace(CONFIG, **changes), policy)


@pytest.fixture(scope="module")
def batch():
    return random_rows(LENGTHS)


def vectors_and_gradients(network, batch, rng=None):
    """Vectors of valid tokens, and the gradients of a loss of them."""
    with tf.GradientTape() as tape:
        hidden = tf.boolean_mask(network(*batch, rng), batch[2])
        loss = tf.reduce_sum(tf.sin(3.0 * hidden))
    return [hidden, *map(tf.convert_to_tensor, tape.gradient(loss, network.trainable_variables))]


def require_close(actual, expected):
    """Compares values with a tolerance for sums in another order, relative to the largest value."""
    for first, second in zip(actual, expected, strict=True):
        np.testing.assert_allclose(first, second, rtol=0,
                                   atol=2e-5 * max(1.0, np.abs(second).max()))


@pytest.mark.parametrize("dropout", [False, True])
def test_blocks_compute_what_a_masked_matrix_does(batch, monkeypatch, dropout):
    """With dropout the masks of the two differ; the loss is finite and differentiable."""
    rng = Rng(seed=1, step=tf.constant(0, tf.int64),
              first_example=tf.constant(0, tf.int64)) if dropout else None
    in_blocks = vectors_and_gradients(encoder(), batch, rng)
    assert all(np.isfinite(value).all() for value in in_blocks)
    monkeypatch.setattr(modern, "DENSE_WINDOWS", 100)
    masked = vectors_and_gradients(encoder(), batch, rng)
    if not dropout:
        require_close(in_blocks, masked)


def test_a_token_reads_its_window_alone_in_local_layers(batch):
    """With one local layer above the embeddings, changes beyond the window have no effect."""
    network = create_encoder(dataclasses.replace(CONFIG, num_layers=2, global_every=2),
                             LayerOptions(seed=1))
    layer, ids = network.encoder_layers[1], batch[0][:1]
    x = tf.random.stateless_normal([1, ids.shape[1], 32], [1, 2])
    inputs = modern.layer_inputs(network.config, batch[2][:1], tf.float32, None)[1]
    changed = tf.concat([x[:, :20], -x[:, 20:21], x[:, 21:]], axis=1)
    moved = np.abs(layer(changed, *inputs[:1], None, rotation=inputs.rotation)
                   - layer(x, *inputs[:1], None, rotation=inputs.rotation))[0].max(axis=-1)
    assert np.flatnonzero(moved).tolist() == list(range(16, 25))


@pytest.mark.parametrize("layers", [4, 3])  # The last layer is global, or local.
def test_the_last_layer_computes_one_position_with_equal_gradients(batch, layers):
    network, results = encoder(num_layers=layers), []
    for compute in (lambda: network.first(*batch), lambda: network(*batch)[:, 0]):
        with tf.GradientTape() as tape:
            vectors = compute()
            loss = tf.reduce_sum(tf.sin(vectors))
        results.append([vectors, *map(tf.convert_to_tensor, tape.gradient(
            loss, network.trainable_variables))])
    require_close(*results)


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_one_graph_answers_for_any_batch_and_length(batch, dtype):
    answers = inference_encoder(encoder(), dtype)
    spec = tf.TensorSpec([None, None], tf.int32)
    with inference_mode():
        functions = [tf.function(function, autograph=False).get_concrete_function(
            spec, spec, tf.TensorSpec([None, None], tf.bool))
            for function in (answers.__call__, answers.first)]
    tolerance = 1e-5 if dtype is tf.float32 else 0.2
    expected = encoder()(*batch)
    for line, length in enumerate(LENGTHS):
        row = [part[line:line + 1, :length] for part in batch]
        np.testing.assert_allclose(tf.cast(functions[0](*row), tf.float32)[0],
                                   expected[line, :length], atol=tolerance)
        np.testing.assert_allclose(tf.cast(functions[1](*row), tf.float32)[0], expected[line, 0],
                                   atol=tolerance)


def test_answers_have_the_weights_of_frozen_layers_too(batch):
    network = random_encoder(CONFIG)
    for part in (network.embeddings, network.encoder_layers[0]):
        part.trainable = False  # Keras then lists their weights last.
    require_close([inference_encoder(network, tf.float32).first(*batch)], [network.first(*batch)])


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_geglu_and_its_gradient_are_those_of_its_formula(dtype):
    drawn = [tf.cast(tf.random.stateless_normal([5, 7], [1, seed], stddev=2.0), dtype)
             for seed in range(2)]
    results = []
    for function in (geglu, lambda x, gate: tf.nn.gelu(x, approximate=False) * gate):
        values = drawn if function is geglu else [tf.cast(part, tf.float32) for part in drawn]
        with tf.GradientTape() as tape:
            tape.watch(values)
            y = function(*values)
            loss = tf.reduce_sum(tf.sin(tf.cast(y, tf.float32)))
        results.append([tf.cast(part, tf.float32) for part in (y, *tape.gradient(loss, values))])
    for actual, expected in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-5 if dtype is tf.float32 else 0.05)


@pytest.mark.parametrize("tying", Tying)
def test_every_way_of_tying_has_the_weights_of_the_table(tying):
    config = tiny_run.config(**SMALL, model__generator_width=0.5, model__tying=tying).model
    model = ElectraModel(config, seed=1)
    table = specs.discriminator(config.discriminator).weights | specs.own_generator(config)
    assert table == {path: value.shape for path, value in named_arrays.of(model.variables).items()}
    assert not any("token_type" in path or "/position" in path for path in table)


def test_weights_before_residual_sums_are_drawn_smaller():
    config = tiny_run.config(**SMALL, model__hidden_size=256, model__num_layers=8).model
    values = named_arrays.of(create_encoder(config.discriminator, LayerOptions(seed=1)).variables)
    wide, narrow = (values[f"electra/encoder/layer_1/attention/{name}/kernel"].std()
                    for name in ("self/qkv", "output/dense"))
    assert wide == pytest.approx(0.02 * 0.8796, rel=0.01)
    assert narrow == pytest.approx(wide / 4.0, rel=0.02)


def test_learning_rates_decay_from_the_final_norm_to_the_embeddings():
    paths = list(parameter_shapes.full_encoder(CONFIG))
    factors = dict(zip(paths, rate_factors(paths, num_layers=4, decay=0.5), strict=True))
    assert factors["electra/encoder/layer_3/final/LayerNorm/gamma"] == 0.5
    assert factors["electra/encoder/layer_0/attention/self/qkv/kernel"] == 0.5**4
    assert factors["electra/embeddings/word_embeddings"] == 0.5**5


def test_flops_count_the_gate_and_the_windows():
    config = dataclasses.replace(CONFIG, embedding_size=32)
    network = specs.NetworkSpec(name="x", encoder=config, body=parameter_shapes.full_encoder(
        config), heads=(), trained=False)
    kernels = 4 * 2 * (32 * 96 + 32 * 32 + 32 * 96 + 48 * 32)
    assert flops.matmul_flops_per_token([network], 100, 0) == (
        kernels + 4 * 32 * (100 + 9 + 9 + 100))


def test_published_sizes_and_their_generators():
    base = MODEL_SIZES["modern-base"]
    shape = dataclasses.replace(base.discriminator, vocab_size=50368)
    # transformers counts 149,014,272 weights in ModernBertModel with this vocabulary.
    assert parameter_shapes.size(parameter_shapes.full_encoder(shape)) == 149_014_272
    for size in ("modern-tiny", "modern-small", "modern-base"):
        model = MODEL_SIZES[size]
        assert model.is_modern and model.positions is Positions.ROTARY
        assert model.generator.hidden_size == model.embedding_size
        assert model.generator.num_layers == round(model.num_layers / 3)
        assert abs(model.generator.intermediate_size / model.hidden_size - 1.5) < 0.01


def test_a_generator_begins_as_the_first_layers_with_the_final_norm():
    config = tiny_run.config(**SMALL, model__num_layers=3, model__generator_depth=0.34,
                             model__generator_width=1.0, model__embedding_size=32).model
    model = ElectraModel(config, seed=1)
    weights = named_arrays.of(model.discriminator.encoder.variables)
    weights["electra/encoder/layer_2/final/LayerNorm/gamma"] += 1.0
    copied, notes = init_from.copy_to_generator(weights, model.variables)
    assert notes == ["generator (copy of the encoder's first layer)"]
    np.testing.assert_array_equal(copied["generator/encoder/layer_0/final/LayerNorm/gamma"],
                                  weights["electra/encoder/layer_2/final/LayerNorm/gamma"])


@pytest.mark.parametrize(("changes", "words"), [
    ({"attention_window": 7}, "model.attention_window must be even. Received: 7"),
    ({"attention_window": 0}, "model.attention_window must be greater than 0"),
    ({"num_heads": 5}, "model.hidden_size must be a multiple of model.num_heads=5"),
    ({"hidden_size": 36}, "model.hidden_size / model.num_heads must be even")])
def test_shapes_that_do_not_fit_are_refused(changes, words):
    with refused(words):
        dataclasses.replace(CONFIG, **changes)


def test_learned_positions_and_several_adjacent_layers_are_refused_by_name():
    with refused("model.positions must be rotary for model.architecture=modernbert. "
                 "Received: 'learned'"):
        pretraining_config("tiny", architecture="modernbert", positions="learned")
    assert pretraining_config("tiny", architecture="modernbert").model.positions == "rotary"
    with refused("initialization.layers must be 1 for model.architecture=modernbert"):
        InitializationConfig(scheme="adjacent", layers=2).require_width(MODEL_SIZES["modern-tiny"])
