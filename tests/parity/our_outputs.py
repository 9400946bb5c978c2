"""What our networks compute from a batch, under the names of `pytorch_outputs`."""

import dataclasses
from pathlib import Path

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints.weights import assign_parts
from electra_tf.finetuning.run import prepare_trained
from electra_tf.formats import pretrained
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.electra import ElectraModel
from electra_tf.tasks.kinds.base import text_vectors
from electra_tf.tasks.task import Kind
from electra_tf.text.rows import Tokens
from tests.support import seeded

HARDWARE = {"training.precision": "float32", "runtime.distribution_strategy": "one_device",
            "runtime.cpu_parts": 1}


def _inputs() -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    batch = seeded.batch()
    return (tf.constant(batch["input_ids"], tf.int32),
            tf.constant(batch["token_type_ids"], tf.int32),
            tf.constant(batch["attention_mask"] > 0))


def of_networks(checkpoint: Checkpoint) -> dict[str, dict[str, np.ndarray]]:
    """Returns hidden states and logits of "discriminator", and of "generator" if it is there."""
    model = ElectraModel(checkpoint.config, seed=0)
    assign_parts(model.trainable_variables, checkpoint.weights, checkpoint.source)
    inputs = _inputs()
    outputs = {"discriminator": _hidden(model.discriminator.encoder.all_layers(*inputs))
               | {"logits": model.discriminator(*inputs).numpy()}}
    if checkpoint.has_generator:
        batch, length = inputs[0].shape
        positions = tf.tile(tf.range(length)[tf.newaxis], [batch, 1])
        logits = model.generator(*inputs, positions)[:, :checkpoint.config.vocab_size]
        outputs["generator"] = _hidden(model.generator.encoder.all_layers(*inputs)) | {
            "logits": tf.reshape(logits, [batch, length, -1]).numpy()}
    return outputs


def of_task(checkpoint: Checkpoint, directory: Path) -> dict[str, np.ndarray]:
    """Returns hidden states and logits of a fine-tuned model, written as a run and loaded again."""
    settings = dict(checkpoint.task_settings) | {"task.max_query_length": 8}  # Of 32 positions.
    pretrained.write(dataclasses.replace(checkpoint, task_settings=settings), directory,
                     pretrained.Format.RUN)
    run = prepare_trained(directory, HARDWARE)
    model, inputs, spec = run.trained_model(), _inputs(), run.spec
    layers = model.encoder.all_layers(*inputs)
    if spec.kind is Kind.QUESTION_ANSWERING:
        batch, length = inputs[0].shape
        spans = model.head(layers[-1], tf.ones([batch, length], tf.bool),
                           tf.zeros([batch], tf.int32))
        return _hidden(layers) | {"start_logits": spans.start.numpy(),
                                  "end_logits": spans.end.numpy()}
    vectors = layers[-1] if spec.kind is Kind.TAGGING else text_vectors(
        model.encoder, Tokens(*inputs), run.config.task)
    return _hidden(layers) | {
        "logits": model.head(vectors).numpy() * spec.scale + spec.offset}


def _hidden(layers: list[tf.Tensor]) -> dict[str, np.ndarray]:
    return {f"hidden_{number}": layer.numpy() for number, layer in enumerate(layers)}
