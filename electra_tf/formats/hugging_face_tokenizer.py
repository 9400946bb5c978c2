"""Reads and writes the files of Hugging Face's tokenizers.

The vocabulary is in vocab.txt, or in tokenizer.json if transformers 5 wrote the directory. The
normalization is in tokenizer_config.json, and in tokenizer.json for text in NFC.
"""

import dataclasses
import json
from typing import Any, Literal

from electra_tf.platform import strict_json
from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB, Path
from electra_tf.text import vocabulary as tokens
from electra_tf.text.tokenization import Normalization, TextSettings
from electra_tf.text.tokenizer import LONG_WORD_CUT
from electra_tf.text.vocabulary import CONTINUATION, UNK, Vocabulary

SETTINGS_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
VOCABULARY_FILE = "vocab.txt"
FILES = SETTINGS_FILE, TOKENIZER_FILE, VOCABULARY_FILE
"""All files that `read_text` may read."""
_MOST_TOKENIZER = 256 * MIB  # A tokenizer.json of 500,000 tokens has 30 MB.


def read_text(directory: Path) -> TextSettings:
    """Returns the vocabulary and normalization of a network; `UserError` for unreadable files.

    The caller compares the number of tokens with the rows of the embeddings.
    """
    path, settings = directory / SETTINGS_FILE, _TokenizerSettings()
    if path.exists():
        settings = strict_json.read(path, _TokenizerSettings, most=MIB)
    normalization = Normalization.of(settings.do_lower_case, settings.strip_accents)
    if not normalization.strip_accents and (directory / TOKENIZER_FILE).exists():
        # Only tokenizer.json has this step, which can be nested in others.
        steps = str(_read_tokenizer(directory).normalizer)
        normalization = dataclasses.replace(normalization, nfc="'type': 'NFC'" in steps)
    return TextSettings(vocabulary=_read_vocabulary(directory), normalization=normalization)


def write_text(text: TextSettings, directory: Path, max_length: int) -> None:
    """Writes the files of a tokenizer that reads rows of at most `max_length` tokens.

    tokenizer.json is written only for text in NFC.
    """
    normalization = text.normalization
    settings = {"tokenizer_class":
                "PreTrainedTokenizerFast" if normalization.nfc else "ElectraTokenizer",
                "do_lower_case": normalization.lower_case,
                "strip_accents": normalization.strip_accents, "tokenize_chinese_chars": True,
                "model_max_length": max_length, "pad_token": tokens.PAD,
                "unk_token": tokens.UNK, "cls_token": tokens.CLS, "sep_token": tokens.SEP,
                "mask_token": tokens.MASK}
    contents = {SETTINGS_FILE: settings}
    if normalization.nfc:
        contents[TOKENIZER_FILE] = _composing_tokenizer(text)
    for file, content in contents.items():
        write_atomically(directory / file, (json.dumps(content, indent=2) + "\n").encode())
    text.vocabulary.save(directory / VOCABULARY_FILE)


def _composing_tokenizer(text: TextSettings) -> dict[str, Any]:
    """Returns tokenizer.json for text in NFC, for which tokenizer_config.json has no setting.

    Its steps are those of `text.tokenizer`: BERT's cleaning, NFC, BERT's splitting, the cut of long
    words, WordPiece. Rows are [CLS] text [SEP] or [CLS] text [SEP] text [SEP].
    """
    normalization, ids = text.normalization, text.vocabulary.ids

    def special(token: str, segment: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": segment}}

    first, second = ({"Sequence": {"id": name, "type_id": segment}}
                     for segment, name in enumerate("AB"))
    single = [special(tokens.CLS), first, special(tokens.SEP)]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": ids[token], "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}
            for token in tokens.SPECIAL_TOKENS],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
             "strip_accents": normalization.strip_accents, "lowercase": normalization.lower_case},
            {"type": "NFC"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"Regex": LONG_WORD_CUT}, "behavior": "Isolated",
             "invert": False}]},
        "post_processor": {
            "type": "TemplateProcessing", "single": single,
            "pair": [*single, second, special(tokens.SEP, 1)],
            "special_tokens": {token: {"id": token, "ids": [ids[token]], "tokens": [token]}
                               for token in (tokens.CLS, tokens.SEP)}},
        "decoder": {"type": "WordPiece", "prefix": tokens.CONTINUATION, "cleanup": False},
        "model": {"type": "WordPiece", "unk_token": tokens.UNK,
                  "continuing_subword_prefix": tokens.CONTINUATION,
                  "max_input_chars_per_word": tokens.MAX_WORD_CHARACTERS, "vocab": ids}}


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
class _Tokenizer:
    """The entries of tokenizer.json that are read."""

    __pydantic_config__ = strict_json.OPEN

    model: _WordPiece
    normalizer: Any = None


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
