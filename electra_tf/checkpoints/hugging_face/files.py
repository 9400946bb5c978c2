"""The files of a Hugging Face directory that say how its network reads text.

The vocabulary is vocab.txt; transformers 5 leaves it out and keeps it in tokenizer.json.
"""

import dataclasses
from typing import Any

from electra_tf.checkpoints.pretrained import TextSettings
from electra_tf.checkpoints.run_directory import VOCABULARY_FILE
from electra_tf.platform import strict_json
from electra_tf.platform.bounded import MIB
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.text.normalization import Normalization
from electra_tf.text.vocabulary import CLS, CONTINUATION, MASK, PAD, SEP, UNK, Vocabulary

CONFIG_FILE = "config.json"
TOKENIZER_SETTINGS_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
_MOST_TOKENIZER = 256 * MIB
"""Of tokenizer.json; one of 500,000 tokens has 30 MB."""
_MOST_SETTINGS = MIB


def read_text(directory: Path, vocab_size: int, pad_id: int | None = None) -> TextSettings:
    """Returns how a directory's network reads text.

    Args:
        directory: with vocab.txt, or tokenizer.json instead.
        vocab_size: that the network has.
        pad_id: likewise; None if it doesn't say.

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
    tokenize_chinese_chars: bool | None = None
    do_basic_tokenize: bool | None = None
    pad_token: str | dict[str, Any] | None = None
    unk_token: str | dict[str, Any] | None = None
    cls_token: str | dict[str, Any] | None = None
    sep_token: str | dict[str, Any] | None = None
    mask_token: str | dict[str, Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Tokenizer:
    """What we read of tokenizer.json."""

    __pydantic_config__ = strict_json.OPEN

    model: dict[str, Any]
    normalizer: dict[str, Any] | None = None


def _composes(normalizer: dict[str, Any] | None) -> bool:
    """Tells whether the normalizer of a tokenizer.json has an NFC step."""
    steps = normalizer.get("normalizers", [normalizer]) if normalizer else []
    return isinstance(steps, list) and any(
        isinstance(step, dict) and step.get("type") == "NFC" for step in steps)


def _require_ours(path: Path, settings: _TokenizerSettings) -> None:
    """Refuses a tokenizer that isn't ELECTRA's."""
    for name in ("tokenize_chinese_chars", "do_basic_tokenize"):
        if getattr(settings, name) is False:
            raise UserError(f"{path}: {name} is false; ELECTRA's tokenizer does that.")
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
    model = strict_json.read(path, _Tokenizer, most=_MOST_TOKENIZER).model
    kind = (model.get("type"), model.get("continuing_subword_prefix"), model.get("unk_token", UNK))
    if kind != ("WordPiece", CONTINUATION, UNK):
        raise UserError(f"{path} holds no WordPiece vocabulary with {CONTINUATION!r} and {UNK}, "
                        "which ELECTRA's is.")
    ids = model.get("vocab")
    if not isinstance(ids, dict) or not all(type(index) is int for index in ids.values()):
        raise UserError(f"{path}: model.vocab must be an object from tokens to whole numbers.")
    tokens = sorted(ids, key=ids.__getitem__)
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise UserError(f"{path}: the ids of its {len(tokens)} tokens aren't 0, 1, 2 and so on.")
    return Vocabulary(tuple(tokens), source=str(path))
