"""Converts networks between formats, including heads of fine-tuned models."""

import dataclasses
import enum
import json
import re
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from electra_tf.checkpoints import formats, google, run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.weights import has_generator, require_finite, require_networks
from electra_tf.config.objectives import OBJECTIVES
from electra_tf.config.overrides import flatten, override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.export import hugging_face
from electra_tf.modeling.weight_table import discriminator, generator
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.tasks.registry import recipe
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.tokenization import Normalization


class Format(enum.StrEnum):
    """Format of the checkpoint; those of Google and Model Garden have `vocab.txt` beside them."""

    RUN = "run"
    GOOGLE = "google"
    HUGGING_FACE = "hugging_face"
    MODEL_GARDEN = "model_garden"


def read(path: Path, *, vocab_file: Path | None = None, normalization: Normalization | None = None,
         num_heads: int | None = None) -> Pretrained:
    """Returns what `formats.read` does, with the head of a fine-tuned model in our form."""
    networks = formats.read(path, vocab_file=vocab_file, normalization=normalization,
                            num_heads=num_heads)
    if networks.their_head is None:
        return networks
    config, weights = networks.their_head
    spec, settings, head = hugging_face.head_from_theirs(config, weights, networks.source)
    require_finite(head, networks.source)
    return dataclasses.replace(
        networks, weights={**networks.weights, **head}, task=spec.facts(), task_settings=settings,
        their_head=None)


def write(networks: Pretrained, directory: Path, form: Format) -> None:
    """Writes networks into a new directory; refuses weights that the format cannot hold."""
    if form in (Format.GOOGLE, Format.MODEL_GARDEN):
        if networks.task is not None:
            raise UserError(f"{networks.source} is a fine-tuned model; this format is written for "
                            "pre-trained networks alone.")
        require_networks(networks.weights, networks.model, networks.source)
    writers = {Format.RUN: _write_run, Format.HUGGING_FACE: hugging_face.write,
               Format.GOOGLE: _write_google, Format.MODEL_GARDEN: _write_model_garden}
    writers[form](networks, directory)


def _write_run(networks: Pretrained, directory: Path) -> None:
    """Writes a run's directory with a checkpoint of step 0, without an optimizer's state."""
    facts = networks.text.facts() | {"initial": networks.source}
    if networks.task is None:
        config = PretrainingConfig(model=networks.model,
                                   objective=OBJECTIVES[networks.objective].settings)
        identity = facts | {name: value for name, value in flatten(config).items()
                            if name.startswith(("model.", "objective."))}
    else:
        task = TaskSpec.of_facts(networks.task, networks.source)
        config = override(recipe(task.name, networks.model), networks.task_settings)
        identity = run_directory.identity(config, facts | task.facts())
    run_directory.claim(directory, identity)
    networks.text.save(directory / VOCABULARY_FILE)
    holder = tf.Module()
    holder.weights = [tf.Variable(value, name=name) for name, value in networks.weights.items()]
    step = tf.Variable(0, dtype=tf.int64, name="step")
    CheckpointManager(tf.train.Checkpoint(weights=holder, step=step),
                      directory / run_directory.CHECKPOINTS, keep=1).save(0)


def _write_google(networks: Pretrained, directory: Path) -> None:
    """Writes `model.ckpt.*`, as TensorFlow 1's saver does, `vocab.txt` and `bert_config.json`."""
    make_directory(directory)
    names = sorted(networks.weights)
    tf.raw_ops.SaveV2(
        prefix=tf.constant(str(directory / google.PREFIX)), tensor_names=tf.constant(names),
        shape_and_slices=tf.constant([""] * len(names)),
        tensors=[tf.constant(networks.weights[name]) for name in names])
    networks.text.save(directory / VOCABULARY_FILE)
    sizes = {"hidden_size": networks.model.hidden_size,
             "num_hidden_layers": networks.model.num_layers, google.HEADS: networks.model.num_heads}
    write_atomically(directory / google.CONFIG_FILE, f"{json.dumps(sizes, indent=1)}\n".encode())


def _write_model_garden(networks: Pretrained, directory: Path) -> None:
    """Writes a checkpoint that Model Garden's encoders and ElectraPretrainer restore.

    Both networks hold the embeddings, shared or not. The poolers, which ELECTRA does not train, get
    new values; the next-sentence head is left out.
    """
    model, values = networks.model, {}
    parts = {"electra": (model.discriminator, discriminator(model.discriminator).weights)}
    if has_generator(networks.weights):
        parts["generator"] = model.generator, generator(model).weights
    for part, (encoder, names) in parts.items():
        for name in names:
            path = google.garden_path(re.sub("^electra/", f"{part}/", name))
            values[path] = _with_heads(path, networks.weights[name], encoder.num_heads)
        pooler = google.garden_path(f"{part}/_pooler_layer")
        size, spread = encoder.hidden_size, encoder.initializer_range
        values |= {f"{pooler}/bias": np.zeros(size, np.float32),
                   f"{pooler}/kernel": tf.random.stateless_truncated_normal(
                       [size, size], seed=[0, 0], stddev=spread).numpy()}
    objects = _objects(values)
    if "generator" in parts:
        objects.masked_lm.embedding_table = objects.generator_network._embedding_layer.embeddings
    make_directory(directory)
    tf.train.Checkpoint(model=objects, encoder=objects.discriminator_network).save(
        str(directory / google.GARDEN_PREFIX))
    networks.text.save(directory / VOCABULARY_FILE)


def _with_heads(path: str, value: np.ndarray, heads: int) -> np.ndarray:
    """Returns a weight with the dimension of heads that Model Garden's attention has."""
    if path.endswith("_attention_layer/_output_dense/kernel"):
        return value.reshape(heads, -1, value.shape[-1])
    if re.search("_attention_layer/_(query|key|value)_dense/", path):
        return value.reshape(*value.shape[:-1], heads, -1)
    return value


def _objects(values: Mapping[str, np.ndarray]) -> tf.Module:
    """Returns an object with a variable at each path of attributes; `values` are by path."""
    root = tf.Module()
    for path, value in values.items():
        *parents, leaf = path.split("/")
        node = root
        for name in parents:
            if not hasattr(node, name):
                setattr(node, name, tf.Module())
            node = getattr(node, name)
        setattr(node, leaf, tf.Variable(value))
    return root
