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
from electra_tf.text.vocabulary import CONTINUATION, PAD, UNK, Vocabulary

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
"""Entries that make another network; ours never writes these."""
_MOST_CONFIG = 4 * MIB  # A config has 1 KB, and the names of labels.
_MOST_TOKENIZER = 256 * MIB  # A tokenizer.json of 500,000 tokens has 30 MB.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The entries of config.json that are read."""

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

    def settings(self) -> dict[str, Any]:
        """Returns the encoder's settings by our names."""
        return {ours: getattr(self, theirs) for ours, theirs in (SIZES | OTHERS).items()}


def read_config(directory: Path) -> tuple[Config, ModelConfig]:
    """Returns what config.json says of a network; `UserError` if it isn't ELECTRA's."""
    path = directory / CONFIG_FILE
    found = strict_json.read(path, dict[str, Any], most=_MOST_CONFIG)
    for name, value in (FIXED | _OTHERWISE).items():
        other = found.get(name, value)
        if other != value or isinstance(other, bool) != isinstance(value, bool):
            raise UserError(f"{path}: {name} is {shown(other)}; ELECTRA's is {value!r}.")
    config = strict_json.read(path, Config, most=_MOST_CONFIG)
    try:
        return config, ModelConfig(**config.settings())
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def read_text(directory: Path, config: Config) -> TextSettings:
    """Returns how a directory's network reads text; refuses another network's vocabulary."""
    path, settings = directory / TOKENIZER_SETTINGS_FILE, _TokenizerSettings()
    if path.exists():
        settings = strict_json.read(path, _TokenizerSettings, most=MIB)
    normalization = Normalization.of(settings.do_lower_case, settings.strip_accents)
    if not normalization.strip_accents and (directory / TOKENIZER_FILE).exists():
        normalization = dataclasses.replace(normalization, nfc=_read_tokenizer(directory).composes)
    vocabulary = _read_vocabulary(directory)
    if vocabulary.size != config.vocab_size:
        raise UserError(f"{vocabulary.source} has {vocabulary.size} entries, but vocab_size of "
                        f"{directory / CONFIG_FILE} is {config.vocab_size}; the vocabulary is "
                        "another network's.")
    if config.pad_token_id not in (None, vocabulary.pad_id):
        raise UserError(f"{directory / CONFIG_FILE}: pad_token_id is {config.pad_token_id}, but "
                        f"{PAD} stands at {vocabulary.pad_id} of {vocabulary.source}.")
    return TextSettings(vocabulary=vocabulary, normalization=normalization)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _TokenizerSettings:
    """The entries of tokenizer_config.json that are read; None is transformers' default."""

    __pydantic_config__ = strict_json.OPEN

    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    tokenize_chinese_chars: Literal[True] | None = None
    do_basic_tokenize: Literal[True] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _WordPiece:
    __pydantic_config__ = strict_json.OPEN

    type: Literal["WordPiece"]
    continuing_subword_prefix: Literal[CONTINUATION]
    vocab: dict[str, int]
    unk_token: Literal[UNK] = UNK


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Normalizer:
    __pydantic_config__ = strict_json.OPEN

    type: str | None = None
    normalizers: tuple[dict[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tokenizer:
    """The entries of tokenizer.json that are read."""

    __pydantic_config__ = strict_json.OPEN

    model: _WordPiece
    normalizer: _Normalizer | None = None

    @property
    def composes(self) -> bool:
        """Tells whether an NFC step composes text, which no other file tells."""
        found = self.normalizer
        return found is not None and "NFC" in (
            found.type, *(step.get("type") for step in found.normalizers))


def _read_tokenizer(directory: Path) -> _Tokenizer:
    return strict_json.read(directory / TOKENIZER_FILE, _Tokenizer, most=_MOST_TOKENIZER)


def _read_vocabulary(directory: Path) -> Vocabulary:
    path = directory / TOKENIZER_FILE
    if (directory / VOCABULARY_FILE).exists() or not path.exists():
        return Vocabulary.load(directory / VOCABULARY_FILE)
    ids = _read_tokenizer(directory).model.vocab
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{path}: the ids of its {len(tokens)} tokens aren't 0, 1, 2 and so on.")
    return Vocabulary(tuple(tokens), source=str(path))
