"""Runs Model Garden's `ElectraPretrainer` with the loss of its own task.

It ties the word table only (its encoders build their own position and segment tables), and its
inputs are masked beforehand: its step does not draw masks.
"""

import itertools
from importlib import metadata

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp import optimization
from official.nlp.modeling import models, networks

from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.workload import Encoder, Setting, Step, Workload, serve, steps_of

Inputs = dict[str, tf.Tensor]


def prepare(workload: Workload, setting: Setting) -> Ready:
    """Returns the step in float32, with or without XLA; mixed_bfloat16 fails in release 2.20."""
    return Ready(
        label=f"float32, XLA {setting.compiler}",
        versions={"TensorFlow": tf.__version__,
                  "Model Garden": metadata.version("tf-models-official")},
        turn=steps_of(lambda: _build(workload, setting)))


def _build(workload: Workload, setting: Setting) -> Step:
    model = _model(workload)
    optimizer = optimization.AdamWeightDecay(
        learning_rate=plain.LEARNING_RATE, epsilon=plain.ADAM_EPSILON,
        weight_decay_rate=plain.WEIGHT_DECAY, gradient_clip_norm=plain.CLIP_NORM,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"])
    batches = itertools.cycle(_batches(workload))
    model(next(batches))  # Creates the weights.

    @tf.function(jit_compile=setting.compiler == "on")
    def train(inputs: Inputs) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = _loss(model(inputs, training=True), inputs["masked_lm_ids"])
        # Its poolers and next-sentence head get no gradient.
        pairs = zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables,
                    strict=True)
        optimizer.apply_gradients([pair for pair in pairs if pair[0] is not None])
        return loss

    return lambda: float(train(next(batches)))


def _loss(outputs: Inputs, masked_ids: tf.Tensor) -> tf.Tensor:
    """Returns the joint loss [] of outputs [B, N, V] and [B, L]; every slot and position counts."""
    generator = tf.nn.sparse_softmax_cross_entropy_with_logits(
        masked_ids, outputs["lm_outputs"])
    discriminator = tf.nn.sigmoid_cross_entropy_with_logits(
        tf.cast(outputs["disc_label"], tf.float32), outputs["disc_logits"])
    return (plain.GENERATOR_WEIGHT * tf.reduce_mean(generator)
            + plain.DISCRIMINATOR_WEIGHT * tf.reduce_mean(discriminator))


def _model(workload: Workload) -> models.ElectraPretrainer:
    discriminator = _encoder(workload, workload.discriminator, None)
    generator = _encoder(workload, workload.generator, discriminator.get_embedding_layer())
    return models.ElectraPretrainer(
        generator_network=generator, discriminator_network=discriminator,
        vocab_size=workload.vocab_size, num_classes=2,
        num_token_predictions=workload.predictions, mlm_activation="gelu",
        mlm_initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02))


def _encoder(workload: Workload, encoder: Encoder,
             words: tf_keras.layers.Layer | None) -> networks.BertEncoder:
    return networks.BertEncoder(
        vocab_size=workload.vocab_size, hidden_size=encoder.hidden_size,
        num_layers=encoder.num_layers, num_attention_heads=encoder.num_heads,
        max_sequence_length=plain.MAX_POSITIONS, type_vocab_size=plain.SEGMENTS,
        inner_dim=encoder.intermediate_size, output_dropout=plain.DROPOUT,
        attention_dropout=plain.DROPOUT, embedding_width=encoder.embedding_size,
        embedding_layer=words, dict_outputs=True)


def _batches(workload: Workload) -> list[Inputs]:
    """Returns synthetic text: int32 [B, L] with [MASK], and the masked tokens, int32 [B, N]."""
    draws = np.random.default_rng(1)
    shape = (workload.batch, workload.length)

    def batch() -> Inputs:
        ids = draws.integers(plain.FIRST_WORD_ID, workload.vocab_size, shape)
        # Model Garden never replaces position 0.
        order = draws.permuted(np.tile(np.arange(1, workload.length), (workload.batch, 1)), axis=1)
        positions = np.sort(order[:, :workload.predictions], axis=1)
        original = np.take_along_axis(ids, positions, axis=1)
        hidden = draws.random(positions.shape) < plain.MASK_TOKEN_FRACTION
        np.put_along_axis(ids, positions, np.where(hidden, plain.MASK_ID, original), axis=1)
        arrays = {
            "input_word_ids": ids, "input_mask": np.ones(shape), "input_type_ids": np.zeros(shape),
            "masked_lm_positions": positions, "masked_lm_ids": original}
        return {name: tf.constant(array, tf.int32) for name, array in arrays.items()}

    return [batch() for _ in range(plain.BATCHES)]


if __name__ == "__main__":
    serve(prepare)
