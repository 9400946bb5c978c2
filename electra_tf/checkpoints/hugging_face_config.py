"""What config.json says of a network: its sizes, and that it is ELECTRA's."""

from collections.abc import Mapping
from typing import Any

from electra_tf.checkpoints import hugging_face_files as files
from electra_tf.checkpoints.hugging_face_files import CONFIG_FILE
from electra_tf.command_line import UserError
from electra_tf.config.model import EncoderConfig
from electra_tf.storage import Path

SIZES = {"vocab_size": "vocab_size", "embedding_size": "embedding_size",
         "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
         "num_heads": "num_attention_heads", "intermediate_size": "intermediate_size",
         "max_position_embeddings": "max_position_embeddings",
         "type_vocab_size": "type_vocab_size"}
"""Our setting -> theirs; whole numbers."""
_OTHERS = {"hidden_dropout": "hidden_dropout_prob",
           "attention_dropout": "attention_probs_dropout_prob",
           "initializer_range": "initializer_range"}
"""Likewise, of numbers that matter in training alone."""
_FIXED = {"model_type": "electra", "hidden_act": "gelu", "layer_norm_eps": 1e-12}


def content(encoder: EncoderConfig, *, pad_id: int, more: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what config.json says of an encoder, with `more`: of its head."""
    return {**more, **_FIXED,
            **{theirs: getattr(encoder, ours) for ours, theirs in (SIZES | _OTHERS).items()},
            "pad_token_id": pad_id, "torch_dtype": "float32"}


def architecture(directory: Path) -> str:
    """Returns the name of a network's class; empty if config.json doesn't say."""
    found = files.read_config(directory).get("architectures") or [""]
    return ", ".join(map(str, found))


def read_sizes(directory: Path, wanted: str) -> dict[str, Any]:
    """Returns the sizes of an encoder, by the names of our settings.

    Args:
        directory: of the network.
        wanted: the class that it must be of, if config.json says one.

    Raises:
        UserError: no ELECTRA, another class; a size that is missing or no number.
    """
    path, config = directory / CONFIG_FILE, files.read_config(directory)
    for name, value in _FIXED.items():
        if config.get(name, value) != value:
            raise UserError(f"{path}: {name} is {config[name]!r}; ELECTRA's is {value!r}.")
    found = architecture(directory) or wanted
    if found != wanted:
        raise UserError(f"{path}: the architecture is {found}; {wanted} is expected. A generator "
                        "is read beside its discriminator: name the directory that holds "
                        "discriminator/ and generator/.")
    names = SIZES | _OTHERS
    missing = [theirs for ours, theirs in names.items()
               if theirs not in config and ours != "initializer_range"]
    if missing:
        raise UserError(f"{path} doesn't say {missing[0]}.")
    sizes = {ours: config[theirs] for ours, theirs in names.items() if theirs in config}
    for ours, value in sizes.items():
        number = int if ours in SIZES else (int, float)
        if isinstance(value, bool) or not isinstance(value, number):
            raise UserError(f"{path}: {names[ours]} must be a number. Received: {value!r}")
    return sizes
