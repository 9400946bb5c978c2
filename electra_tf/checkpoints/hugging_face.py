"""Hugging Face's directories: config.json, model.safetensors, vocab.txt, tokenizer_config.json.

It keeps the two networks apart, each with a copy of the embeddings: a pair is a directory with
`discriminator/` and `generator/`. A fine-tuned model is a directory by itself.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from electra_tf.checkpoints import hugging_face_config as config_file
from electra_tf.checkpoints import hugging_face_files as files
from electra_tf.checkpoints import hugging_face_heads as heads
from electra_tf.checkpoints.hugging_face_files import CONFIG_FILE, WEIGHTS_FILE
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.shapes import (
    Shapes,
    discriminator_shapes,
    embedding_shapes,
    encoder_shapes,
    generator_shapes,
    has_generator,
    require_exactly,
    require_networks,
)
from electra_tf.checkpoints.weights import Weights
from electra_tf.command_line import UserError
from electra_tf.config.model import EncoderConfig, ModelConfig, Tying
from electra_tf.tasks.task import TaskSpec

DISCRIMINATOR, GENERATOR = "discriminator", "generator"
ARCHITECTURES = {DISCRIMINATOR: "ElectraForPreTraining", GENERATOR: "ElectraForMaskedLM"}
_RENAMED = {"generator_predictions/output_bias": "generator_lm_head.bias",
            "discriminator_predictions/dense_1/kernel":
                "discriminator_predictions.dense_prediction.weight",
            "discriminator_predictions/dense_1/bias":
                "discriminator_predictions.dense_prediction.bias"}
_NOTHING = np.zeros([0])
_IGNORED = frozenset({"electra.embeddings.position_ids", "generator_lm_head.weight"})
"""A buffer of old releases, and the tied table, where it is written twice."""


def is_directory_of(path: Path) -> bool:
    """Tells whether a directory holds a network, or a pair of them, in this format."""
    return (path / CONFIG_FILE).exists() or (path / DISCRIMINATOR / CONFIG_FILE).exists()


def write(networks: Pretrained, directory: Path) -> None:
    """Writes `discriminator/`, and `generator/` if it is known; a fine-tuned model as it is.

    Raises:
        UserError: the weights aren't exactly those of a discriminator, or of it and a generator, or
            of an encoder with a head that Hugging Face has.
    """
    model = networks.model
    if networks.task is not None:
        _write_finetuned(networks, networks.task, directory)
        return
    require_networks(networks.weights, model, networks.source)
    _write_network(directory / DISCRIMINATOR, DISCRIMINATOR, model.discriminator,
                   _discriminator_names(model), networks)
    if has_generator(networks.weights):
        _write_network(directory / GENERATOR, GENERATOR, model.generator,
                       _generator_names(model), networks)


def read(path: Path) -> Pretrained:
    """Returns the networks of a directory: a pair, or a discriminator alone.

    Raises:
        UserError: a file is missing or damaged, another architecture, or not exactly ELECTRA's
            weights; two networks that don't share what ours have to share.
    """
    pair = (path / DISCRIMINATOR / CONFIG_FILE).exists()
    directory = path / DISCRIMINATOR if pair else path
    if config_file.architecture(directory) in heads.ARCHITECTURES.values():
        return _read_finetuned(directory)
    sizes = config_file.read_sizes(directory, ARCHITECTURES[DISCRIMINATOR])
    model = ModelConfig(**sizes)
    text = files.read_text(directory, model.vocab_size)
    weights = _by_our_names(files.read_weights(directory), _discriminator_names(model), directory)
    if pair and (path / GENERATOR / CONFIG_FILE).exists():
        model, generator = _read_generator(path / GENERATOR, sizes, weights)
        weights |= generator
        other = files.read_text(path / GENERATOR, model.vocab_size)
        if other != text:
            raise UserError(f"{path}: {GENERATOR}/ reads text in another way than {DISCRIMINATOR}/ "
                            "does (vocabulary, lower case or accents); they are no pair.")
    require_networks(weights, model, str(path))
    return Pretrained(source=str(path), model=model, text=text, weights=weights)


def _whole_encoder(model: ModelConfig) -> Shapes:
    encoder = model.discriminator
    return embedding_shapes("electra", encoder) | encoder_shapes("electra", encoder)


def _discriminator_names(model: ModelConfig) -> dict[str, str]:
    """Returns their name -> ours."""
    return {_theirs(name): name for name in discriminator_shapes(model)}


def _generator_names(model: ModelConfig) -> dict[str, str]:
    """Returns their name -> ours, of the generator's own weights and of the shared ones."""
    own = generator_shapes(model)
    shared = embedding_shapes("electra", model.generator)
    if model.tying is Tying.EVERYTHING:
        shared |= encoder_shapes("electra", model.generator)
    return {_theirs(name): name for name in (*shared, *own)}


def _theirs(name: str) -> str:
    """Returns what Hugging Face calls a weight.

    >>> _theirs("generator/encoder/layer_3/output/dense/kernel")
    'electra.encoder.layer.3.output.dense.weight'
    """
    if name in _RENAMED:
        return _RENAMED[name]
    path = re.sub(r"/layer_(\d+)/", r"/layer/\1/", re.sub("^generator/", "electra/", name))
    path = re.sub("/(kernel|gamma)$", "/weight", re.sub("/beta$", "/bias", path))
    return (f"{path}/weight" if path.endswith("_embeddings") else path).replace("/", ".")


def _write_network(directory: Path, network: str, encoder: EncoderConfig,
                   names: Mapping[str, str], networks: Pretrained) -> None:
    config = config_file.content(encoder, pad_id=networks.text.vocabulary.pad_id,
                                 more={"architectures": [ARCHITECTURES[network]]})
    files.write(directory, config, _by_their_names(networks.weights, names), networks.text)


def _write_finetuned(networks: Pretrained, task: TaskSpec, directory: Path) -> None:
    head = heads.to_theirs(task, networks.weights, networks.source)
    shapes = _whole_encoder(networks.model)
    require_exactly({name: value for name, value in networks.weights.items()
                     if not name.startswith(heads.HEAD)}, shapes, networks.source)
    config = config_file.content(networks.model.discriminator, more=head.config,
                                 pad_id=networks.text.vocabulary.pad_id)
    encoder = _by_their_names(networks.weights, {_theirs(name): name for name in shapes})
    files.write(directory, config, encoder | dict(head.weights), networks.text)


def _by_their_names(weights: Weights, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    return {theirs: _turned(ours, weights[ours]) for theirs, ours in names.items()}


def _turned(name: str, value: np.ndarray) -> np.ndarray:
    """PyTorch keeps dense kernels as [outputs, inputs]."""
    return value.T if name.endswith("/kernel") else value


def _read_finetuned(directory: Path) -> Pretrained:
    config = files.read_config(directory)
    model = ModelConfig(**config_file.read_sizes(directory, config_file.architecture(directory)))
    found = files.read_weights(directory)
    names = {_theirs(name): name for name in _whole_encoder(model)}
    task, settings, head = heads.from_theirs(
        config, {name: value for name, value in found.items()
                 if name not in names and name not in _IGNORED}, str(directory))
    weights = _by_our_names(
        {name: value for name, value in found.items() if name in names}, names, directory)
    require_exactly(weights, _whole_encoder(model), str(directory))
    return Pretrained(source=str(directory), model=model, weights=weights | dict(head), task=task,
                      text=files.read_text(directory, model.vocab_size), head_settings=settings)


def _by_our_names(found: Weights, names: Mapping[str, str],
                  directory: Path) -> dict[str, np.ndarray]:
    """Returns weights by our names; all of theirs must have one."""
    path = directory / WEIGHTS_FILE
    unknown = sorted(found.keys() - names.keys() - _IGNORED)
    if unknown:
        raise UserError(f"{path} has no place in ELECTRA for {len(unknown)} weights: "
                        f"{', '.join(unknown)}.")
    missing = sorted(names.keys() - found.keys())
    if missing:
        raise UserError(f"{path} lacks {len(missing)} weights: {', '.join(missing)}.")
    return {ours: _turned(ours, found[theirs]).astype(np.float32)
            for theirs, ours in names.items()}


def _read_generator(directory: Path, sizes: Mapping[str, Any],
                    discriminator: Weights) -> tuple[ModelConfig, Weights]:
    """Returns the shape of both networks, and the generator's own weights."""
    own = config_file.read_sizes(directory, ARCHITECTURES[GENERATOR])
    found = files.read_weights(directory)
    model = ModelConfig(**sizes, generator_width=own["hidden_size"] / sizes["hidden_size"],
                        generator_depth=own["num_layers"] / sizes["num_layers"],
                        tying=_tying(found, own, discriminator, directory))
    ours = model.generator
    differing = [name for name in config_file.SIZES if getattr(ours, name) != own[name]]
    if differing:
        name = differing[0]
        raise UserError(f"{directory / CONFIG_FILE}: {config_file.SIZES[name]} is {own[name]}; the "
                        f"generator of this discriminator has {getattr(ours, name)}.")
    weights = _by_our_names(found, _generator_names(model), directory)
    return model, {name: weights[name] for name in generator_shapes(model)}


def _tying(found: Weights, own: Mapping[str, Any], discriminator: Weights,
           directory: Path) -> Tying:
    """Returns what a generator, by their names, has in common with the discriminator, by ours."""
    def shared(*beginnings: str) -> bool:
        return all(np.array_equal(_turned(name, found.get(_theirs(name), _NOTHING)), value)
                   for name, value in discriminator.items() if name.startswith(beginnings))

    words = "electra/embeddings/word_embeddings"
    if shared("electra/"):
        return Tying.EVERYTHING
    if shared("electra/embeddings/"):
        return Tying.ALL_EMBEDDINGS
    if shared(words):
        return Tying.TOKEN_EMBEDDINGS
    if own["embedding_size"] == own["hidden_size"]:
        return Tying.NONE
    raise UserError(f"{directory}: {words} isn't the discriminator's; a generator with embeddings "
                    "of its own has embedding_size equal to hidden_size.")
