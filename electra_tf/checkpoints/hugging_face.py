"""Hugging Face's directories: config.json, model.safetensors, vocab.txt, tokenizer_config.json.

It keeps the two networks apart, each with a copy of the embeddings: a pair is a directory with
`discriminator/` and `generator/`. A fine-tuned model is a directory by itself.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from electra_tf.atomic_file import make_directory, write_atomically
from electra_tf.checkpoints import hugging_face_heads as heads
from electra_tf.checkpoints.pretrained import Pretrained, TextSettings
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
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
from electra_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary

CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE = (
    "config.json", "model.safetensors", "tokenizer_config.json")
DISCRIMINATOR, GENERATOR = "discriminator", "generator"
ARCHITECTURES = {DISCRIMINATOR: "ElectraForPreTraining", GENERATOR: "ElectraForMaskedLM"}
_SIZES = {"vocab_size": "vocab_size", "embedding_size": "embedding_size",
          "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
          "num_heads": "num_attention_heads", "intermediate_size": "intermediate_size",
          "max_position_embeddings": "max_position_embeddings",
          "type_vocab_size": "type_vocab_size", "hidden_dropout": "hidden_dropout_prob",
          "attention_dropout": "attention_probs_dropout_prob",
          "initializer_range": "initializer_range"}
"""Our setting -> theirs."""
_FIXED = {"model_type": "electra", "hidden_act": "gelu", "layer_norm_eps": 1e-12}
_RENAMED = {"generator_predictions/output_bias": "generator_lm_head.bias",
            "discriminator_predictions/dense_1/kernel":
                "discriminator_predictions.dense_prediction.weight",
            "discriminator_predictions/dense_1/bias":
                "discriminator_predictions.dense_prediction.bias"}
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
    if _architecture(directory) in heads.ARCHITECTURES.values():
        return _read_finetuned(directory)
    sizes = _read_sizes(directory, ARCHITECTURES[DISCRIMINATOR])
    text = _read_text(directory)
    model = ModelConfig(**sizes)
    weights = _read_weights(directory, _discriminator_names(model))
    if pair and (path / GENERATOR / CONFIG_FILE).exists():
        model, generator = _read_generator(path / GENERATOR, sizes, weights)
        weights |= generator
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
    _write(directory, encoder, _by_their_names(networks.weights, names), networks.text,
           {"architectures": [ARCHITECTURES[network]]})


def _write_finetuned(networks: Pretrained, task: TaskSpec, directory: Path) -> None:
    head = heads.to_theirs(task, networks.weights, networks.source)
    shapes = _whole_encoder(networks.model)
    require_exactly({name: value for name, value in networks.weights.items()
                     if not name.startswith(heads.HEAD)}, shapes, networks.source)
    encoder = _by_their_names(networks.weights, {_theirs(name): name for name in shapes})
    _write(directory, networks.model.discriminator, encoder | dict(head.weights), networks.text,
           head.config)


def _by_their_names(weights: Weights, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    return {theirs: _turned(ours, weights[ours]) for theirs, ours in names.items()}


def _write(directory: Path, encoder: EncoderConfig, weights: Weights, text: TextSettings,
           more: Mapping[str, Any]) -> None:
    make_directory(directory)
    save_file({name: np.ascontiguousarray(value) for name, value in weights.items()},
              directory / WEIGHTS_FILE, metadata={"format": "pt"})
    config = {**more, **_FIXED,
              **{theirs: getattr(encoder, ours) for ours, theirs in _SIZES.items()},
              "pad_token_id": text.vocabulary.pad_id, "torch_dtype": "float32"}
    tokenizer = {"tokenizer_class": "ElectraTokenizer", "do_lower_case": text.lower_case,
                 "strip_accents": text.strip_accents, "tokenize_chinese_chars": True,
                 "model_max_length": encoder.max_position_embeddings, "pad_token": PAD,
                 "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
    for file, content in ((CONFIG_FILE, config), (TOKENIZER_FILE, tokenizer)):
        write_atomically(directory / file, (json.dumps(content, indent=2) + "\n").encode())
    text.vocabulary.save(directory / VOCABULARY_FILE)


def _turned(name: str, value: np.ndarray) -> np.ndarray:
    """PyTorch keeps dense kernels as [outputs, inputs]."""
    return value.T if name.endswith("/kernel") else value


def _read_sizes(directory: Path, architecture: str) -> dict[str, Any]:
    config = _read_json(directory / CONFIG_FILE)
    for name, value in _FIXED.items():
        if config.get(name, value) != value:
            raise UserError(f"{directory / CONFIG_FILE}: {name} is {config[name]!r}; ELECTRA's is "
                            f"{value!r}.")
    found = _architecture(directory) or architecture
    if found != architecture:
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {found}; {architecture} "
                        "is expected.")
    missing = [theirs for theirs in _SIZES.values()
               if theirs not in config and theirs != "initializer_range"]
    if missing:
        raise UserError(f"{directory / CONFIG_FILE} doesn't say {missing[0]}.")
    return {ours: config[theirs] for ours, theirs in _SIZES.items() if theirs in config}


def _read_text(directory: Path) -> TextSettings:
    path = directory / TOKENIZER_FILE
    settings = _read_json(path) if path.exists() else {}
    lower_case = settings.get("do_lower_case", True)
    strip_accents = settings.get("strip_accents")
    return TextSettings(
        vocabulary=Vocabulary.load(directory / VOCABULARY_FILE), lower_case=lower_case,
        strip_accents=lower_case if strip_accents is None else strip_accents)


def _architecture(directory: Path) -> str:
    found = _read_json(directory / CONFIG_FILE).get("architectures") or [""]
    return ", ".join(map(str, found))


def _read_finetuned(directory: Path) -> Pretrained:
    config = _read_json(directory / CONFIG_FILE)
    model = ModelConfig(**_read_sizes(directory, _architecture(directory)))
    found = _load(directory)
    names = {_theirs(name): name for name in _whole_encoder(model)}
    task, settings, head = heads.from_theirs(
        config, {name: value for name, value in found.items()
                 if name not in names and name not in _IGNORED}, str(directory))
    weights = _by_our_names(
        {name: value for name, value in found.items() if name in names}, names, directory)
    require_exactly(weights, _whole_encoder(model), str(directory))
    return Pretrained(source=str(directory), model=model, text=_read_text(directory),
                      weights=weights | dict(head), task=task, head_settings=settings)


def _load(directory: Path) -> dict[str, np.ndarray]:
    path = directory / WEIGHTS_FILE
    try:
        return load_file(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}. Only safetensors are "
                        "read; pickled weights can run code.") from error
    except SafetensorError as error:
        raise UserError(f"{path} is damaged: {error}.") from error


def _read_weights(directory: Path, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Returns weights by our names; all of theirs must have one."""
    return _by_our_names(_load(directory), names, directory)


def _by_our_names(found: Weights, names: Mapping[str, str],
                  directory: Path) -> dict[str, np.ndarray]:
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
    own = _read_sizes(directory, ARCHITECTURES[GENERATOR])
    model = ModelConfig(**sizes, generator_width=own["hidden_size"] / sizes["hidden_size"],
                        generator_depth=own["num_layers"] / sizes["num_layers"])
    ours = model.generator
    differing = [name for name in _SIZES if name in own and getattr(ours, name) != own[name]
                 and name not in ("hidden_dropout", "attention_dropout", "initializer_range")]
    if differing:
        name = differing[0]
        raise UserError(f"{directory / CONFIG_FILE}: {_SIZES[name]} is {own[name]}; the generator "
                        f"of this discriminator has {getattr(ours, name)}.")
    weights = _read_weights(directory, _generator_names(model))
    for name in embedding_shapes("electra", model.discriminator):
        if not np.array_equal(weights.pop(name), discriminator[name]):
            raise UserError(f"{directory}: {name} isn't the discriminator's; networks with "
                            "embeddings of their own can't be joined.")
    return model, weights


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} must hold a JSON object.")
    return content
