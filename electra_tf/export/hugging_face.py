"""Writes Hugging Face's directories; `checkpoints/hugging_face` reads them."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors.numpy import save

from electra_tf.checkpoints.hugging_face import config as config_file
from electra_tf.checkpoints.hugging_face.files import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    TOKENIZER_SETTINGS_FILE,
)
from electra_tf.checkpoints.hugging_face.networks import (
    ARCHITECTURES,
    DISCRIMINATOR,
    GENERATOR,
    by_theirs,
    turned,
)
from electra_tf.checkpoints.hugging_face.weight_files import WEIGHTS_FILE
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.shapes import has_generator, require_exactly, require_networks
from electra_tf.checkpoints.weights import Weights
from electra_tf.config.model import EncoderConfig
from electra_tf.export import composing_tokenizer
from electra_tf.export import hugging_face_heads as heads
from electra_tf.modeling.weight_table import discriminator, generator, whole_encoder
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.storage import Path
from electra_tf.tasks.task import TaskSpec
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.vocabulary import CLS, MASK, PAD, SEP, UNK


def write(networks: Pretrained, directory: Path) -> None:
    """Writes `discriminator/`, and `generator/` if it is known; a fine-tuned model as it is.

    Raises:
        UserError: the weights aren't exactly those of a discriminator, or of it and a generator, or
            of an encoder with a head that Hugging Face has.
    """
    model = networks.model
    if networks.task is not None:
        _write_finetuned(networks, TaskSpec.of_facts(networks.task), directory)
        return
    require_networks(networks.weights, model, networks.source)
    _write_network(directory / DISCRIMINATOR, DISCRIMINATOR, model.discriminator,
                   by_theirs(discriminator(model.discriminator).weights), networks)
    if has_generator(networks.weights):
        _write_network(directory / GENERATOR, GENERATOR, model.generator,
                       by_theirs(generator(model).weights), networks)


def _write_network(directory: Path, network: str, encoder: EncoderConfig,
                   names: Mapping[str, str], networks: Pretrained) -> None:
    config = _config(encoder, pad_id=networks.text.vocabulary.pad_id,
                                 more={"architectures": [ARCHITECTURES[network]]})
    _write_files(directory, config, _by_their_names(networks.weights, names), networks.text)


def _write_finetuned(networks: Pretrained, task: TaskSpec, directory: Path) -> None:
    head = heads.to_theirs(task, networks.weights, networks.source)
    require_exactly({name: value for name, value in networks.weights.items()
                     if not name.startswith(heads.HEAD)},
                    whole_encoder(networks.model.discriminator), networks.source)
    config = _config(networks.model.discriminator, more=head.config,
                                 pad_id=networks.text.vocabulary.pad_id)
    encoder = _by_their_names(
        networks.weights, by_theirs(whole_encoder(networks.model.discriminator)))
    _write_files(directory, config, encoder | dict(head.weights), networks.text)


def _config(encoder: EncoderConfig, *, pad_id: int, more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what config.json says of an encoder, with `more`: of its head."""
    return {**more, **config_file.FIXED,
            **{theirs: getattr(encoder, ours)
               for ours, theirs in (config_file.SIZES | config_file.OTHERS).items()},
            "pad_token_id": pad_id, "torch_dtype": "float32"}


def _write_files(directory: Path, config: Mapping[str, Any], weights: Weights,
                 text: TextSettings) -> None:
    """Writes the four files that transformers reads; tokenizer.json too, for composed text.

    Args:
        directory: made if need be.
        config: of config.json.
        weights: by their names, as PyTorch turns them.
        text: how text becomes token ids.

    Raises:
        UserError: the directory can't be written.
    """
    make_directory(directory)
    content = save({name: np.ascontiguousarray(value) for name, value in weights.items()},
                   metadata={"format": "pt"})
    write_atomically(directory / WEIGHTS_FILE, content)
    nfc = text.normalization.nfc
    settings = {"tokenizer_class":
                composing_tokenizer.TOKENIZER_CLASS if nfc else "ElectraTokenizer",
                "do_lower_case": text.normalization.lower_case,
                "strip_accents": text.normalization.strip_accents, "tokenize_chinese_chars": True,
                "model_max_length": config["max_position_embeddings"], "pad_token": PAD,
                "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
    files = {CONFIG_FILE: config, TOKENIZER_SETTINGS_FILE: settings}
    if nfc:
        files[TOKENIZER_FILE] = composing_tokenizer.content(text)
    for file, content in files.items():
        write_atomically(directory / file, (json.dumps(content, indent=2) + "\n").encode())
    text.vocabulary.save(directory / VOCABULARY_FILE)


def _by_their_names(weights: Weights, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Returns weights as they have them; `names`: theirs -> ours."""
    return {theirs: turned(ours, weights[ours]) for theirs, ours in names.items()}
