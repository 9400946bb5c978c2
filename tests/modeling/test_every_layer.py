"""What holds for every layer with weights; a line in `LAYERS` brings the next one all checks."""

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import parameter_shapes
from electra_tf.modeling.electra import MaskedLanguageModelHead, ReplacedTokenHead
from electra_tf.modeling.encoder import EncoderLayer, create_encoder
from electra_tf.modeling.layers import EmbeddingTable, LayerNorm, LayerOptions
from electra_tf.modeling.parameter_shapes import dense
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import QuestionHead, ScoreHead
from tests.support.rng import rng_at

B, L, H, E, V = 3, 6, 16, 8, 20
CONFIG = EncoderConfig(
    vocab_size=V, embedding_size=E, hidden_size=H, num_layers=2, num_heads=2, intermediate_size=24,
    max_position_embeddings=L, type_vocab_size=2, hidden_dropout=0.5, attention_dropout=0.5,
    initializer_range=0.1)
NUMBERS = np.random.default_rng(1)
IDS = tf.constant(NUMBERS.integers(0, V, [B, L]), tf.int32)
SEGMENTS = tf.constant(NUMBERS.integers(0, 2, [B, L]), tf.int32)
VALID = tf.constant(np.arange(L) < np.array([[6], [4], [1]]))
HIDDEN = tf.constant(NUMBERS.normal(size=[B, L, H]), tf.float32)
BIAS = tf.where(VALID, 0.0, -1e4)[:, tf.newaxis, tf.newaxis]
STARTS = tf.constant([0, 2, 5], tf.int32)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A layer, what it reads and what it has."""

    build: Callable[[LayerOptions], tf_keras.layers.Layer]
    inputs: tuple[tf.Tensor, ...]  # [B, ...]; floating ones are cast to the policy's type.
    weights: Mapping[str, tuple[int, ...]]
    outputs: tuple[tuple[int, ...], ...]  # Shapes, [B, ...].
    hidden: bool = False  # Its outputs have the policy's type; otherwise float32.
    draws: bool = True  # It drops out if it is given randomness.

    def call(self, layer: tf_keras.layers.Layer, inputs: tuple[tf.Tensor, ...],
             rng: Rng | None = None) -> tuple[tf.Tensor, ...]:
        """Returns all outputs."""
        cast = [tf.cast(part, layer.compute_dtype) if part.dtype.is_floating else part
                for part in inputs]
        outputs = layer(*cast, *([rng] if self.draws else []))
        return tuple(part for part in (outputs if isinstance(outputs, tuple) else (outputs,))
                     if part is not None)


LAYERS = {
    "LayerNorm": Case(
        build=lambda build: LayerNorm("x", H, build), inputs=(HIDDEN,), outputs=((B, L, H),),
        weights={"x/gamma": (H,), "x/beta": (H,)}, hidden=True, draws=False),
    "EmbeddingTable": Case(
        build=lambda build: EmbeddingTable("x", V, E, build, 0.1), inputs=(IDS,),
        weights={"x": (V, E)}, outputs=((B, L, E),), draws=False),
    "EncoderLayer": Case(
        build=lambda build: EncoderLayer("x", CONFIG, build), inputs=(HIDDEN, BIAS),
        weights=parameter_shapes.layer("x", CONFIG), outputs=((B, L, H),), hidden=True),
    "Encoder": Case(
        build=lambda build: create_encoder(CONFIG, build), inputs=(IDS, SEGMENTS, VALID),
        weights=parameter_shapes.full_encoder(CONFIG), outputs=((B, L, H),), hidden=True),
    "MaskedLanguageModelHead": Case(
        build=lambda build: MaskedLanguageModelHead(
            "x", CONFIG, build, EmbeddingTable("x/words", V, E, build, 0.1)),
        inputs=(HIDDEN[:, 0],),
        weights={"x/words": (V, E), **parameter_shapes.vocabulary_head("x", CONFIG)},
        outputs=((B, 128),), hidden=True, draws=False),  # V rounded up to a full block.
    "ReplacedTokenHead": Case(
        build=lambda build: ReplacedTokenHead("x", CONFIG, build), inputs=(HIDDEN,),
        weights=parameter_shapes.binary_head("x", CONFIG), outputs=((B, L),), draws=False),
    "ScoreHead": Case(
        build=lambda build: ScoreHead("x", H, 3, dropout_rate=0.5, seed=build.seed,
                                      hidden_layer=True),
        inputs=(HIDDEN[:, 0],), weights=dense("x/hidden", H, H) | dense("x/dense", H, 3),
        outputs=((B, 3),)),
    "QuestionHead": Case(
        build=lambda build: QuestionHead("x", H, seed=build.seed),
        inputs=(HIDDEN, VALID, STARTS),
        weights=dense("x/dense", H, 1) | dense("x/qa_hidden", 2 * H, 512)
        | dense("x/dense_1", 512, 1) | dense("x/dense_2", 2 * H, 512) | dense("x/dense_3", 512, 1),
        outputs=((B, L), (B, L), (B,)), draws=False),
}
EVERY = pytest.mark.parametrize("case", LAYERS.values(), ids=LAYERS)


@functools.cache
def built(case, policy="float32"):
    return case.build(LayerOptions(seed=1, policy=policy))


@functools.cache
def exact(case):
    return case.call(built(case), case.inputs)


def valid_parts(outputs):
    """Outputs as float32, without what stands on padding, which may be anything."""
    for part in outputs:
        value = tf.cast(part, tf.float32).numpy()
        if value.shape[:2] == (B, L):
            value = value[VALID.numpy()]
        yield value


def assert_close(outputs, expected, **tolerance):
    for value, other in zip(valid_parts(outputs), valid_parts(expected), strict=True):
        np.testing.assert_allclose(value, other, **tolerance)


@EVERY
def test_weights_have_the_tables_names_and_shapes_and_depend_on_the_seed(case):
    variables, same, other = (case.build(LayerOptions(seed=seed)).variables for seed in (1, 1, 2))
    shapes = {variable.name.removesuffix(":0"): tuple(variable.shape) for variable in variables}
    assert shapes == case.weights and len(variables) == len(shapes)
    assert all(variable.dtype == tf.float32 and variable.trainable for variable in variables)
    for value, again, different in zip(variables, same, other, strict=True):
        np.testing.assert_array_equal(value, again)
        constant = len(np.unique(value)) == 1
        assert constant == (value.numpy() == different.numpy()).all()


@EVERY
def test_outputs_have_their_shapes_and_types_also_in_bfloat16(case):
    for policy in ("float32", "mixed_bfloat16"):
        outputs = case.call(built(case, policy), case.inputs)
        assert tuple(tuple(part.shape) for part in outputs) == case.outputs
        dtype = built(case, policy).compute_dtype if case.hidden else "float32"
        assert {part.dtype.name for part in outputs} == {dtype}
        assert_close(outputs, exact(case), atol=0.08, rtol=0.08)


@EVERY
def test_xla_computes_the_same_and_sizes_may_be_unknown_when_it_is_traced(case):
    def run(*inputs):
        return case.call(built(case), inputs)

    compiled = tf.function(run, jit_compile=True, autograph=False)
    traced = tf.function(run, autograph=False, input_signature=[
        tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in case.inputs])
    for function in (compiled, traced):
        assert_close(function(*case.inputs), exact(case), atol=2e-5, rtol=2e-5)
    first_rows = traced(*(part[:1] for part in case.inputs))
    for row, value in zip(first_rows, exact(case), strict=True):
        np.testing.assert_allclose(row[0], value[0], atol=2e-5, rtol=2e-5)


@EVERY
def test_a_gradient_reaches_every_weight(case):
    layer = case.build(LayerOptions(seed=1))
    for variable in layer.variables:
        variable.assign_add(0.1 * tf.ones_like(variable))
    with tf.GradientTape() as tape:
        # Squares: the sum of a normalized vector is a constant.
        total = tf.add_n([tf.reduce_sum(tf.square(tf.sin(part)))
                          for part in case.call(layer, case.inputs)])
    gradients = tape.gradient(total, layer.trainable_variables)
    # Attention doesn't change if all its keys move alike.
    assert not [variable.name for variable, gradient in zip(
        layer.trainable_variables, gradients, strict=True)
        if gradient is None or not np.any(tf.convert_to_tensor(gradient))
        and "/key/bias" not in variable.name]


@pytest.mark.parametrize("name", [name for name, case in LAYERS.items() if case.draws])
def test_dropout_is_a_function_of_the_step_and_absent_without_randomness(name):
    case = LAYERS[name]
    dropped, again, other_step = (case.call(built(case), case.inputs, rng_at(step))
                                  for step in (3, 3, 4))
    assert_close(case.call(built(case), case.inputs), exact(case), atol=0.0)
    assert_close(dropped, again, atol=0.0)
    for outputs in (exact(case), other_step):
        assert any(np.any(value != other) for value, other in zip(
            valid_parts(dropped), valid_parts(outputs), strict=True))
