"""The files of a Hugging Face directory that describe its network and how it reads text.

The vocabulary is vocab.txt; transformers 5 leaves it out and keeps it in tokenizer.json.
"""

import dataclasses
from typing import Any, Literal

from electra_tf.checkpoints.pretrained import TextSettings
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.config.model import ModelConfig
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import MIB, Path
from electra_tf.text.tokenization import Normalization
from electra_tf.text.vocabulary import CLS, CONTINUATION, MASK, PAD, SEP, UNK, Vocabulary

CONFIG_FILE = "config.json"
TOKENIZER_SETTINGS_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
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
_MOST_CONFIG = 4 * MIB
"""Of config.json: 1 KB, and the names of labels."""
_MOST_TOKENIZER = 256 * MIB
"""Of tokenizer.json; one of 500,000 tokens has 30 MB."""
_MOST_SETTINGS = MIB


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


def read_config(directory: Path) -> Config:
    """Returns what config.json says of a network.

    Raises:
        UserError: no such file, no JSON, no ELECTRA; a value that is missing or of another type.
    """
    path = directory / CONFIG_FILE
    found = strict_json.read(path, Any, most=_MOST_CONFIG)
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a JSON object. Received: {shown(found)}")
    for name, value in (FIXED | _OTHERWISE).items():
        other = found.get(name, value)
        if other != value or isinstance(other, bool) != isinstance(value, bool):
            raise UserError(f"{path}: {name} is {shown(other)}; ELECTRA's is {value!r}.")
    return strict_json.read(path, Config, most=_MOST_CONFIG)


def model_config(config: Config, directory: Path) -> ModelConfig:
    """Returns the shape of an encoder as our settings; `UserError` for a size that none has."""
    try:
        return ModelConfig(**encoder_sizes(config))
    except UserError as error:
        raise UserError(f"{directory / CONFIG_FILE}: {error}") from error


def encoder_sizes(config: Config) -> dict[str, Any]:
    """Returns the sizes of an encoder by the names of our settings."""
    return {ours: getattr(config, theirs) for ours, theirs in (SIZES | OTHERS).items()}


def require_architecture(config: Config, directory: Path, wanted: str) -> None:
    """Raises `UserError` if config.json says that a network is of another class than wanted."""
    found = config.architecture or wanted
    if found != wanted:
        raise UserError(f"{directory / CONFIG_FILE}: the architecture is {found}; {wanted} is "
                        "expected. A generator is read beside its discriminator: name the "
                        "directory that holds discriminator/ and generator/.")


def read_text(directory: Path, vocab_size: int, pad_id: int | None = None) -> TextSettings:
    """Returns how a directory's network, of this size and padding, reads text.

    Raises:
        UserError: no vocabulary, one of another size, or settings that can't be read.
    """
    path = directory / TOKENIZER_SETTINGS_FILE
    settings = _TokenizerSettings()
    if path.exists():
        settings = strict_json.read(path, _TokenizerSettings, most=_MOST_SETTINGS)
    _require_ours(path, settings)
    vocabulary = _read_vocabulary(directory)
    if vocabulary.size != vocab_size:
        raise UserError(f"{vocabulary.source} has {vocabulary.size} entries, but vocab_size of "
                        f"{directory / CONFIG_FILE} is {vocab_size}; the vocabulary is another "
                        "network's.")
    if pad_id not in (None, vocabulary.pad_id):
        raise UserError(f"{directory / CONFIG_FILE}: pad_token_id is {pad_id}, but {PAD} stands at "
                        f"{vocabulary.pad_id} of {vocabulary.source}.")
    return TextSettings(vocabulary=vocabulary, normalization=_normalization(directory, settings))


def _normalization(directory: Path, settings: "_TokenizerSettings") -> Normalization:
    """Returns what the tokenizer does to text; only tokenizer.json tells that it composes it."""
    found = Normalization.of(settings.do_lower_case, settings.strip_accents)
    path = directory / TOKENIZER_FILE
    if found.strip_accents or not path.exists():
        return found
    tokenizer = strict_json.read(path, _Tokenizer, most=_MOST_TOKENIZER)
    return dataclasses.replace(found, nfc=_composes(tokenizer.normalizer))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _TokenizerSettings:
    """What we read of tokenizer_config.json; None is transformers' default."""

    __pydantic_config__ = strict_json.OPEN

    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    tokenize_chinese_chars: Literal[True] | None = None
    do_basic_tokenize: Literal[True] | None = None
    pad_token: str | dict[str, Any] | None = None
    unk_token: str | dict[str, Any] | None = None
    cls_token: str | dict[str, Any] | None = None
    sep_token: str | dict[str, Any] | None = None
    mask_token: str | dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _WordPiece:
    """The vocabulary of tokenizer.json; ELECTRA's tokenizer has no other values."""

    __pydantic_config__ = strict_json.OPEN

    type: Literal["WordPiece"]
    continuing_subword_prefix: Literal[CONTINUATION]
    vocab: dict[str, int]
    unk_token: Literal[UNK] = UNK


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tokenizer:
    """What we read of tokenizer.json."""

    __pydantic_config__ = strict_json.OPEN

    model: _WordPiece
    normalizer: dict[str, Any] | None = None


def _composes(normalizer: dict[str, Any] | None) -> bool:
    """Tells whether the normalizer of a tokenizer.json has an NFC step."""
    steps = normalizer.get("normalizers", [normalizer]) if normalizer else []
    return isinstance(steps, list) and any(
        isinstance(step, dict) and step.get("type") == "NFC" for step in steps)


def _require_ours(path: Path, settings: _TokenizerSettings) -> None:
    """Refuses special tokens that aren't ELECTRA's."""
    for name, token in (("pad_token", PAD), ("unk_token", UNK), ("cls_token", CLS),
                        ("sep_token", SEP), ("mask_token", MASK)):
        found = getattr(settings, name)
        found = found.get("content") if isinstance(found, dict) else found
        if found not in (None, token):
            raise UserError(f"{path}: {name} is {shown(found)}; ELECTRA's is {token!r}.")


def _read_vocabulary(directory: Path) -> Vocabulary:
    path = directory / TOKENIZER_FILE
    if (directory / VOCABULARY_FILE).exists() or not path.exists():
        return Vocabulary.load(directory / VOCABULARY_FILE)
    ids = strict_json.read(path, _Tokenizer, most=_MOST_TOKENIZER).model.vocab
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{path}: the ids of its {len(tokens)} tokens aren't 0, 1, 2 and so on.")
    return Vocabulary(tuple(tokens), source=str(path))
