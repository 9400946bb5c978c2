"""What config.json says of a network: its sizes, and that it is ELECTRA's."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any

from electra_tf.checkpoints.hugging_face.files import CONFIG_FILE
from electra_tf.config.model import ModelConfig, Tying
from electra_tf.platform import strict_json
from electra_tf.platform.bounded import MIB
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path

SIZES = {"vocab_size": "vocab_size", "embedding_size": "embedding_size",
         "hidden_size": "hidden_size", "num_layers": "num_hidden_layers",
         "num_heads": "num_attention_heads", "intermediate_size": "intermediate_size",
         "max_position_embeddings": "max_position_embeddings",
         "type_vocab_size": "type_vocab_size"}
"""Our setting -> theirs; whole numbers."""
OTHERS = {"hidden_dropout": "hidden_dropout_prob",
           "attention_dropout": "attention_probs_dropout_prob",
           "initializer_range": "initializer_range"}
"""Likewise, of numbers that matter in training alone."""
FIXED = {"model_type": "electra", "hidden_act": "gelu", "layer_norm_eps": 1e-12}
_OTHERWISE = {"position_embedding_type": "absolute", "is_decoder": False,
              "add_cross_attention": False}
"""What would make another network of it; ours never writes these."""
_MOST_BYTES = 4 * MIB
"""Of config.json: 1 KB, and the names of labels."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """What we read of config.json."""

    __pydantic_config__ = strict_json.OPEN

    vocab_size: int
    embedding_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int
    hidden_dropout_prob: float
    attention_probs_dropout_prob: float
    initializer_range: float = ModelConfig.initializer_range
    architectures: tuple[str, ...] | None = None
    pad_token_id: int | None = None
    id2label: dict[str, str] | None = None
    label2id: dict[str, int] | None = None
    problem_type: str | None = None
    finetuning_task: str | None = None

    @property
    def architecture(self) -> str:
        """Name of the network's class; empty if the file doesn't say."""
        return ", ".join(self.architectures or ())


def read(directory: Path) -> Config:
    """Returns what config.json says of a network.

    Raises:
        UserError: no such file, no JSON, no ELECTRA; a value that is missing or of another type.
    """
    path = directory / CONFIG_FILE
    found = strict_json.read(path, Any, most=_MOST_BYTES)
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a JSON object. Received: {shown(found)}")
    for name, value in (FIXED | _OTHERWISE).items():
        other = found.get(name, value)
        if other != value or isinstance(other, bool) != isinstance(value, bool):
            raise UserError(f"{path}: {name} is {shown(other)}; ELECTRA's is {value!r}.")
    return strict_json.read(path, Config, most=_MOST_BYTES)


def model(config: Config, directory: Path,
          generator: Mapping[str, float | Tying] = types.MappingProxyType({})) -> ModelConfig:
    """Returns the shape of networks as our settings.

    Args:
        config: of the discriminator, or of an encoder that was fine-tuned.
        directory: where it comes from, for errors.
        generator: what is known of one: `generator_width`, `generator_depth` and `tying`.

    Raises:
        UserError: a size that no encoder has.
    """
    try:
        return ModelConfig(**sizes(config), **generator)
    except UserError as error:
        raise UserError(f"{directory / CONFIG_FILE}: {error}") from error


def sizes(config: Config) -> dict[str, Any]:
    """Returns the sizes of an encoder by the names of our settings."""
    return {ours: getattr(config, theirs) for ours, theirs in (SIZES | OTHERS).items()}


def require_architecture(config: Config, directory: Path, wanted: str) -> None:
    """Raises `UserError` if config.json says that a network is of another class than wanted."""
    found = config.architecture or wanted
    if found != wanted:
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {found}; {wanted} is "
                        "expected. A generator is read beside its discriminator: name the "
                        "directory that holds discriminator/ and generator/.")
