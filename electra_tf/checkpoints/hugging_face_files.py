"""The files of a Hugging Face directory: config.json, model.safetensors, tokenizer_config.json.

The vocabulary is vocab.txt; transformers 5 leaves it out and keeps it in tokenizer.json.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from electra_tf.atomic_file import make_directory, write_atomically
from electra_tf.checkpoints.pretrained import TextSettings
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.checkpoints.weights import Weights
from electra_tf.command_line import UserError
from electra_tf.storage import Path
from electra_tf.text.vocabulary import CLS, CONTINUATION, MASK, PAD, SEP, UNK, Vocabulary

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
TOKENIZER_SETTINGS_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
_SHARDS_FILE = f"{WEIGHTS_FILE}.index.json"


def write(directory: Path, config: Mapping[str, Any], weights: Weights, text: TextSettings) -> None:
    """Writes the four files that transformers reads.

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
    settings = {"tokenizer_class": "ElectraTokenizer", "do_lower_case": text.lower_case,
                "strip_accents": text.strip_accents, "tokenize_chinese_chars": True,
                "model_max_length": config["max_position_embeddings"], "pad_token": PAD,
                "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}
    for file, content in ((CONFIG_FILE, config), (TOKENIZER_SETTINGS_FILE, settings)):
        write_atomically(directory / file, (json.dumps(content, indent=2) + "\n").encode())
    text.vocabulary.save(directory / VOCABULARY_FILE)


def read_config(directory: Path) -> dict[str, Any]:
    """Returns what config.json holds; `UserError` if it can't be read."""
    return _read_json(directory / CONFIG_FILE)


def read_weights(directory: Path) -> dict[str, np.ndarray]:
    """Returns arrays by their names.

    Raises:
        UserError: there is no model.safetensors, or a damaged one.
    """
    path = directory / WEIGHTS_FILE
    if not path.exists():
        raise UserError(_no_weights(directory))
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}.") from error
    except SafetensorError as error:
        raise UserError(f"{path} is damaged: {error}.") from error


def read_text(directory: Path, vocab_size: int) -> TextSettings:
    """Returns how a directory's network reads text.

    Args:
        directory: with vocab.txt, or tokenizer.json instead.
        vocab_size: that the network has.

    Raises:
        UserError: no vocabulary, one of another size, or settings that can't be read.
    """
    path = directory / TOKENIZER_SETTINGS_FILE
    settings = _read_json(path) if path.exists() else {}
    for name in ("do_lower_case", "strip_accents"):
        if settings.get(name) not in (None, True, False):
            raise UserError(f"{path}: {name} must be true or false. Received: {settings[name]!r}")
    vocabulary = _read_vocabulary(directory)
    if vocabulary.size != vocab_size:
        raise UserError(f"{vocabulary.source} has {vocabulary.size} entries, but vocab_size of "
                        f"{directory / CONFIG_FILE} is {vocab_size}; the vocabulary is another "
                        "network's.")
    lower_case, strip_accents = settings.get("do_lower_case"), settings.get("strip_accents")
    lower_case = True if lower_case is None else lower_case
    return TextSettings(vocabulary=vocabulary, lower_case=lower_case,
                        strip_accents=lower_case if strip_accents is None else strip_accents)


def _read_vocabulary(directory: Path) -> Vocabulary:
    path = directory / TOKENIZER_FILE
    if (directory / VOCABULARY_FILE).exists() or not path.exists():
        return Vocabulary.load(directory / VOCABULARY_FILE)
    model = _read_json(path).get("model", {})
    if (model.get("type"), model.get("continuing_subword_prefix")) != ("WordPiece", CONTINUATION):
        raise UserError(f"{path} holds no WordPiece vocabulary with {CONTINUATION!r}, which "
                        "ELECTRA's is.")
    ids = model["vocab"]
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{path}: the ids of its {len(tokens)} tokens aren't 0, 1, 2 and so on.")
    return Vocabulary(tuple(tokens), source=str(path))


def _no_weights(directory: Path) -> str:
    if (directory / _SHARDS_FILE).exists():
        return (f"{directory} holds weights in several files; write them as one: "
                "model.save_pretrained(..., max_shard_size='100GB').")
    pickled = sorted(path.name for pattern in ("*.bin", "*.h5", "*.msgpack")
                     for path in directory.glob(pattern))
    there = f", only {', '.join(pickled)}" if pickled else ""
    return (f"{directory} holds no {WEIGHTS_FILE}{there}. Only safetensors are read, for pickled "
            "weights can run code; model.save_pretrained(...) of transformers 4.35 or newer writes "
            "them.")


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
