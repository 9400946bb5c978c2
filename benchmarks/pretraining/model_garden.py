"""Runs Model Garden's `ElectraPretrainer` with the loss of its own task.

It ties the word table only (its encoders build their own position and segment tables), and its
inputs are masked beforehand: its step does not draw masks.
"""

import itertools
import types
from importlib import metadata

import numpy as np
import tensorflow as tf
import tf_keras
from official.nlp import optimization
from official.nlp.modeling import models, networks

from benchmarks import system
from benchmarks.pretraining import workload
from benchmarks.pretraining.workload import Workload

Inputs = dict[str, tf.Tensor]


def prepare(work: Workload, precision: str, compiled: bool) -> system.Work:
    """Returns the step in float32, with or without XLA; mixed_bfloat16 fails in release 2.20."""
    discriminator = _encoder(work.discriminator, None)
    generator = _encoder(work.generator, discriminator.get_embedding_layer())
    model = models.ElectraPretrainer(
        generator_network=generator, discriminator_network=discriminator,
        vocab_size=work.discriminator.vocab_size, num_classes=2,
        num_token_predictions=work.predictions, mlm_activation="gelu",
        mlm_initializer=tf_keras.initializers.TruncatedNormal(stddev=0.02))
    optimizer = optimization.AdamWeightDecay(
        learning_rate=workload.LEARNING_RATE, epsilon=workload.ADAM_EPSILON,
        weight_decay_rate=workload.WEIGHT_DECAY, gradient_clip_norm=workload.CLIP_NORM,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"])
    batches = itertools.cycle(_batches(work))
    model(next(batches))  # Creates the weights.

    @tf.function(jit_compile=compiled)
    def train(inputs: Inputs) -> tf.Tensor:
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            # Every slot [B, N, V] and every position [B, L] counts.
            generator_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                inputs["masked_lm_ids"], outputs["lm_outputs"])
            discriminator_losses = tf.nn.sigmoid_cross_entropy_with_logits(
                tf.cast(outputs["disc_label"], tf.float32), outputs["disc_logits"])
            loss = (workload.GENERATOR_WEIGHT * tf.reduce_mean(generator_losses)
                    + workload.DISCRIMINATOR_WEIGHT * tf.reduce_mean(discriminator_losses))
        # Its poolers and next-sentence head get no gradient.
        pairs = zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables,
                    strict=True)
        optimizer.apply_gradients([pair for pair in pairs if pair[0] is not None])
        return loss

    return lambda: {
        "loss": float(train(next(batches))),
        "label": f"Model Garden {precision}, XLA {'on' if compiled else 'off'}", "versions": {
            "TensorFlow": tf.__version__, "Model Garden": metadata.version("tf-models-official")}}


def _encoder(sizes: types.SimpleNamespace,
             words: tf_keras.layers.Layer | None) -> networks.BertEncoder:
    return networks.BertEncoder(
        vocab_size=sizes.vocab_size, hidden_size=sizes.hidden_size, num_layers=sizes.num_layers,
        num_attention_heads=sizes.num_heads, max_sequence_length=sizes.max_position_embeddings,
        type_vocab_size=sizes.type_vocab_size, inner_dim=sizes.intermediate_size,
        output_dropout=sizes.hidden_dropout, attention_dropout=sizes.attention_dropout,
        embedding_width=sizes.embedding_size, embedding_layer=words, dict_outputs=True)


def _batches(work: Workload) -> list[Inputs]:
    """Returns synthetic text: int32 [B, L] with [MASK], and the masked tokens, int32 [B, N]."""
    draws, shape, batches = np.random.default_rng(1), (work.batch, work.length), []
    for _ in range(workload.BATCHES):
        ids = draws.integers(workload.FIRST_WORD_ID, work.discriminator.vocab_size, shape)
        # Model Garden never replaces position 0.
        order = draws.permuted(np.tile(np.arange(1, work.length), (work.batch, 1)), axis=1)
        positions = np.sort(order[:, :work.predictions], axis=1)
        original = np.take_along_axis(ids, positions, axis=1)
        hidden = draws.random(positions.shape) < workload.MASK_TOKEN_FRACTION
        np.put_along_axis(ids, positions, np.where(hidden, workload.MASK_ID, original), axis=1)
        arrays = {
            "input_word_ids": ids, "input_mask": np.ones(shape), "input_type_ids": np.zeros(shape),
            "masked_lm_positions": positions, "masked_lm_ids": original}
        batches.append({name: tf.constant(array, tf.int32) for name, array in arrays.items()})
    return batches


if __name__ == "__main__":
    system.run(prepare)
