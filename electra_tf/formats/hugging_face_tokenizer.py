"""Reads and writes the files of Hugging Face's tokenizers.

tokenizer.json describes the whole tokenizer. transformers builds the classes `_BERT_CLASSES` from
its vocabulary, or vocab.txt, and from tokenizer_config.json. `read_text` does the same and
refuses what gives other ids than `text.tokenizer`.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval

from electra_tf.core import strict_json
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError, note_once, shown
from electra_tf.core.storage import MIB, Path, read_bytes
from electra_tf.text.normalization import Normalization, TextSettings, capitals_in
from electra_tf.text.tokenizer import FINAL_SIGMA, LONG_WORD_CUT
from electra_tf.text.vocabulary import CLS, CONTINUATION, SEP, SPECIAL_TOKENS, UNK, Vocabulary

CONFIG_FILE = "config.json"
SETTINGS_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
VOCABULARY_FILE = "vocab.txt"
SPECIAL_FILE, ADDED_FILE = "special_tokens_map.json", "added_tokens.json"
TOKENIZER_FILES = SETTINGS_FILE, TOKENIZER_FILE, VOCABULARY_FILE, SPECIAL_FILE, ADDED_FILE
"""All files that `read_text` may read, beside config.json."""
_BERT_CLASSES = ("BertTokenizer", "BertTokenizerFast", "ElectraTokenizer", "ElectraTokenizerFast")
_LIBRARY_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes that read tokenizer.json alone."""
_SPECIAL_NAMES = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"),
                          SPECIAL_TOKENS, strict=True))
_LIBRARY_WORD_CHARACTERS = 100
"""The tokenizers library's default of max_input_chars_per_word."""
_BERT_NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
_NFC, _BERT_SPLIT = {"type": "NFC"}, {"type": "BertPreTokenizer"}
_LONG_WORD_SPLIT = {"type": "Split", "pattern": {"Regex": LONG_WORD_CUT}, "behavior": "Isolated",
                    "invert": False}
_FINAL_SIGMA = {"type": "Replace", "pattern": {"Regex": FINAL_SIGMA}, "content": "ς"}
_KEPT = r"\p{L}\p{N}\p{P}\p{S}\p{Z}\t\n\r"
_WORDS = r"\p{P}|[\x{2B820}-\x{2B91F}]"
"""Punctuation and Chinese characters; the library leaves out some of both."""


class _Token(strict_json.OpenObject):
    """An added or special token; spaces around it (lstrip, rstrip) have no ids."""

    content: str
    id: int | None = None
    single_word: bool = False
    normalized: bool | None = None
    special: bool = False


_Name = str | _Token


class _TokenizerConfig(strict_json.OpenObject):
    """The entries of tokenizer_config.json and special_tokens_map.json that are followed."""

    model_type: str | None = None
    tokenizer_class: str | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    split_special_tokens: bool | None = None
    bos_token: _Name | None = None
    eos_token: _Name | None = None
    additional_special_tokens: list[_Name] | None = None
    extra_special_tokens: list[_Name] | dict[str, _Name] | None = None
    added_tokens_decoder: dict[str, _Token] | None = None


_FIXED_ENTRIES = {
    "tokenize_chinese_chars": True, "do_basic_tokenize": True, "never_split": [],
    "padding_side": "right", "truncation_side": "right", "auto_map": None, **_SPECIAL_NAMES}
"""Entries of which one value is followed."""


class _LengthLimit(strict_json.OpenObject):
    model_max_length: Annotated[float, Ge(3)] | None = None
    max_len: Annotated[float, Ge(3)] | None = None  # The entry's name until transformers 3.


class _WordPiece(strict_json.OpenObject):
    type: Literal["WordPiece"] = "WordPiece"
    continuing_subword_prefix: Literal[CONTINUATION]
    vocab: dict[str, int]
    unk_token: Literal[UNK] = UNK
    max_input_chars_per_word: Annotated[int, Interval(ge=1, le=999)] = _LIBRARY_WORD_CHARACTERS


class _TokenizerFile(strict_json.OpenObject):
    """The entries of tokenizer.json that affect ids."""

    model: _WordPiece
    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    added_tokens: list[_Token] = dataclasses.field(default_factory=list)


def read_text(directory: Path) -> TextSettings:
    """Returns the vocabulary and normalization of a network; `UserError` for unreadable files."""
    # tokenizer_config.json decides which class reads the vocabulary, and which file has it.
    config, path = _read_config(directory), directory / TOKENIZER_FILE
    model = _read(path, dict[str, Any]).get("model") if path.exists() else None
    if isinstance(model, dict) and model.get("type") == "BPE":
        raise UserError(f"{path} is a tokenizer of byte-level BPE, and this program reads "
                        "WordPiece; choose a model with BertNormalizer and WordPiece.")
    file = _read(path, _TokenizerFile) if path.exists() else None
    is_library_class = config.tokenizer_class in _LIBRARY_CLASSES
    if is_library_class and file is None:
        raise UserError(f"{directory / SETTINGS_FILE}: tokenizer_class {config.tokenizer_class} "
                        f"needs {TOKENIZER_FILE}, which is missing; copy it from the model.")
    base_ids, vocabulary, added_tokens = _read_tokens(directory, config, file)
    # The normalization: BERT's classes build it from their settings, the library's read it.
    normalization = dataclasses.replace(
        Normalization.of(config.do_lower_case, config.strip_accents),
        max_word_characters=_LIBRARY_WORD_CHARACTERS, final_sigma=config.do_lower_case is False)
    problem = capitals_in(vocabulary)
    if not is_library_class and config.do_lower_case is None and problem:
        note_once(f"{directory} {problem}, so text is lower-cased, as in transformers; "
                  f'{{"do_lower_case": false}} in {SETTINGS_FILE} keeps capitals.')
    if file is not None:
        described = _read_normalization(path, file, vocabulary.ids)
        if is_library_class:
            normalization = described
        elif (described.nfc or described.lower_case and described.final_sigma
              or described.max_word_characters != _LIBRARY_WORD_CHARACTERS):
            raise UserError(f"{path} has a step or a max_input_chars_per_word that the class "
                            'BertTokenizer does not read; write "tokenizer_class": '
                            f'"{_LIBRARY_CLASSES[0]}" in {SETTINGS_FILE} to use it.')
    return TextSettings(vocabulary=vocabulary, normalization=dataclasses.replace(
        normalization, **_searched_tokens(directory, config, added_tokens, base_ids)))


def read_max_length(directory: Path, positions: int) -> int:
    """Returns the number of tokens at which the tokenizer cuts texts, at most `positions`."""
    path = directory / SETTINGS_FILE
    limits = _read(path, _LengthLimit) if path.exists() else _LengthLimit()
    return int(min(limits.model_max_length or limits.max_len or positions, positions))


def _read(path: Path, form: Any) -> Any:
    try:
        content = read_bytes(path, 256 * MIB)  # A tokenizer.json of 500,000 tokens has 30 MB.
        # transformers writes int(1e30) for an unlimited model_max_length, past JSON's 64 bits.
        return strict_json.loads(content.replace(str(int(1e30)).encode(), b"1e30"), form)
    except strict_json.Unreadable as error:
        raise UserError(f"{path}: {error}.") from error


def _read_config(directory: Path) -> _TokenizerConfig:
    """Returns the entries of all files that have some; refuses those that can't be followed."""
    # Entries of all files; those with one value that this program follows must have it.
    entries: dict[str, Any] = {}
    if (directory / CONFIG_FILE).exists():
        config = _read(directory / CONFIG_FILE, _TokenizerConfig)
        entries |= {"tokenizer_class": config.tokenizer_class, "model_type": config.model_type}
    for path in (directory / SPECIAL_FILE, directory / SETTINGS_FILE):
        if not path.exists():
            continue
        config = _read(path, _TokenizerConfig)
        entries |= {key: value for key, value in vars(config).items() if value is not None}
        all_entries = _read(path, dict[str, Any])
        for key, expected in _FIXED_ENTRIES.items():
            value = all_entries.get(key)
            value = value.get("content", value) if isinstance(value, dict) else value
            if value not in (None, expected):
                also = " and in the vocabulary" if key.endswith("_token") else ""
                raise UserError(
                    f"{path}: {key} is {shown(value)}, and this program reads only "
                    f"{json.dumps(expected)}: it would give other ids. To read the model all the "
                    f"same, write {json.dumps(expected)} there{also}.")
    # The class: BERT's, or one that reads tokenizer.json alone.
    config = _TokenizerConfig(**entries)
    if config.model_type == "roformer" and config.tokenizer_class is None:
        raise UserError(f"{directory / SETTINGS_FILE} has no tokenizer_class; RoFormer's own cuts "
                        "Chinese words with jieba, which this program does not do.")
    if config.tokenizer_class not in (None, *_BERT_CLASSES, *_LIBRARY_CLASSES):
        raise UserError(f"{directory / SETTINGS_FILE}: tokenizer_class "
                        f"{shown(config.tokenizer_class)} makes other words and ids of a text "
                        f"than this program; choose a model with {_BERT_CLASSES[0]}, "
                        f"{_BERT_CLASSES[2]} or {_LIBRARY_CLASSES[0]}.")
    return config


def _read_normalization(path: Path, file: _TokenizerFile, ids: Mapping[str, int]
                        ) -> Normalization:
    """Returns what tokenizer.json does to text; `UserError` if this program does other things."""
    # The steps of text: a final sigma, BERT's normalizer and perhaps NFC, then BERT's words.
    steps = _flat(file.normalizer, "normalizers")
    splits = _flat(file.pre_tokenizer, "pretokenizers")
    has_sigma = steps[:1] == [_FINAL_SIGMA]
    bert, later_steps = steps[has_sigma:][:1], steps[has_sigma:][1:]
    nfc = (later_steps, splits[1:]) == ([_NFC], [_LONG_WORD_SPLIT])
    if (not bert or not _BERT_NORMALIZER.items() <= bert[0].items() or splits[:1] != [_BERT_SPLIT]
            or ((later_steps or splits[1:]) and not nfc)):
        normalizer, splitter = (", ".join(shown(step)[1:-1] for step in part) or "none"
                                for part in (steps, splits))
        raise UserError(f"{path}: this program can't follow its normalizer ({normalizer}) or its "
                        f"pre_tokenizer ({splitter}); it reads BertNormalizer with clean_text and "
                        "handle_chinese_chars, and BertPreTokenizer. Choose another model.")

    # Rows: cut and padded at their end, with BERT's segments.
    for name, value in (("truncation", file.truncation), ("padding", file.padding)):
        if (value or {}).get("direction", "Right") != "Right":
            raise UserError(f"{path}: the direction of {name} is not Right; this program cuts and "
                            'pads rows at their end: write "Right".')
    template, processor = _row_template(ids), file.post_processor or {}
    bert_processor = {
        "type": "BertProcessing", "sep": [SEP, ids.get(SEP)], "cls": [CLS, ids.get(CLS)]}
    if processor not in ({}, bert_processor) and any(
            processor.get(key) != template[key] for key in ("type", "single", "pair")):
        raise UserError(f"{path}: its post_processor {shown(processor)} makes other rows than "
                        "[CLS] text [SEP] text [SEP] with the segments 0, 0, 0, 1, 1; write null "
                        "to use these.")
    # BERT's strip_accents is that of lowercase unless it is given.
    lower, strip = bert[0].get("lowercase", True), bert[0].get("strip_accents")
    return dataclasses.replace(
        Normalization.of(lower, strip), nfc=nfc, final_sigma=has_sigma or not lower,
        max_word_characters=file.model.max_input_chars_per_word)


def _flat(step: Any, key: str) -> list[dict[str, Any]]:
    if isinstance(step, dict) and isinstance(step.get(key), list):
        return [inner for part in step[key] for inner in _flat(part, key)]
    return [step] if isinstance(step, dict) else []


def _read_tokens(directory: Path, config: _TokenizerConfig, file: _TokenizerFile | None
                 ) -> tuple[Mapping[str, int], Vocabulary, list[_Token]]:
    """Returns ids before tokens were added, the whole vocabulary, and the added tokens."""
    vocab_file = directory / VOCABULARY_FILE
    # Added tokens, from any of the files that can list them.
    base_ids = file.model.vocab if file else Vocabulary.load(vocab_file).ids
    extra = config.extra_special_tokens or config.additional_special_tokens or []
    extra = [*(extra.values() if isinstance(extra, dict) else extra),
             *filter(None, (config.bos_token, config.eos_token))]
    special = [token if isinstance(token, _Token) else _Token(content=token, special=True)
               for token in extra]
    added = [*(file.added_tokens if file else ()),
             *(dataclasses.replace(token, id=int(index)) for index, token in
               (config.added_tokens_decoder or {}).items())]
    if (directory / ADDED_FILE).exists():
        names = [token.content for token in special]
        added += [_Token(content=name, id=index, special=name in names)
                  for name, index in _read(directory / ADDED_FILE, dict[str, int]).items()]

    # Every token has one id, and the ids have no gaps.
    ids = dict(base_ids)
    for token in added:
        if ids.setdefault(token.content, token.id) != token.id:
            raise UserError(f"{directory}: the added token {shown(token.content)} has the id "
                            f"{token.id} and the id {ids[token.content]}; restore its files.")
    for token in special:
        if token.content not in ids:
            raise UserError(f"{directory}: the special token {shown(token.content)} "
                            "(additional_special_tokens) has no id; remove it from "
                            f"{SETTINGS_FILE} and {SPECIAL_FILE}.")
    path = directory / TOKENIZER_FILE if file else vocab_file
    if "" in ids:  # Of several empty lines of vocab.txt, transformers keeps the last one.
        ids |= {f"[empty line {index + 1}]": index for index in set(range(
            min(max(ids.values()), 2 * len(ids)))).difference(ids.values())}
    names = sorted(ids, key=ids.__getitem__)
    if [ids[name] for name in names] != list(range(len(names))):
        raise UserError(f"{path}: the ids of its {len(names)} tokens aren't 0, 1, 2 and so on; "
                        "restore the files of the tokenizer.")

    # A vocabulary beside tokenizer.json must be the same one.
    if file and vocab_file.exists():
        lines = Vocabulary.load(vocab_file).tokens
        for index, line in enumerate(lines):  # The library strips lines of more characters.
            if index >= len(names) or names[index].strip() not in ("", line.strip()):
                raise UserError(f"{vocab_file}: the token of id {index} is {shown(line)}, but "
                                f"another one in {path}; remove the file that is another model's.")
        names[:len(lines)] = lines
    vocabulary = Vocabulary(tuple(names), source=str(vocab_file if vocab_file.exists() else path))
    return base_ids, vocabulary, added + special


def _searched_tokens(directory: Path, config: _TokenizerConfig, added: Iterable[_Token],
                     base_ids: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """Returns the fields of `Normalization` with the tokens that are searched for in a text."""
    literal: list[str] = []
    normalized: list[str] = []
    for token in added:
        name, special = token.content, token.special
        in_normalized = not special if token.normalized is None else token.normalized
        if (name in (*SPECIAL_TOKENS, *literal, *normalized)
                or special and config.split_special_tokens):
            continue
        problem = ("is empty or a line end; remove it" if not name.strip(" \t\r\n") else
                   "is matched as a whole word only; write \"single_word\": false"
                   if token.single_word else
                   f"begins with {CONTINUATION}; remove it" if name.startswith(CONTINUATION) else
                   "is a word of the vocabulary too; write \"normalized\": true"
                   if name in base_ids and name.isalnum() and not in_normalized else "")
        if problem:
            raise UserError(f"{directory}: the added token {shown(name)} {problem} in its entry.")
        (normalized if in_normalized else literal).append(name)
    return {"literal_tokens": tuple(literal), "normalized_tokens": tuple(normalized)}


def write_text(text: TextSettings, directory: Path, max_length: int, *,
               segments: bool = True) -> None:
    """Writes the files of a tokenizer that reads rows of at most `max_length` tokens.

    tokenizer.json has the steps of `text.tokenizer`. Without `segments` transformers returns none.
    """
    # Settings and vocabulary for the classes of transformers, then the whole tokenizer.
    normalization, ids = text.normalization, text.vocabulary.ids
    write_json(directory / SETTINGS_FILE, {
        "tokenizer_class": _LIBRARY_CLASSES[0], "do_lower_case": normalization.lower_case,
        "strip_accents": normalization.strip_accents, "tokenize_chinese_chars": True,
        "model_input_names": ["input_ids", *["token_type_ids"] * segments, "attention_mask"],
        "model_max_length": max_length, **_SPECIAL_NAMES})
    text.vocabulary.save(directory / VOCABULARY_FILE)
    added = set(normalization.literal_tokens + normalization.normalized_tokens)
    # WordPiece doesn't get the added tokens after the last token that is none.
    size = 1 + max(index for name, index in ids.items() if name not in added)
    has_sigma = normalization.lower_case and normalization.final_sigma
    write_json(directory / TOKENIZER_FILE, {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": ids[name], "content": name, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": name in normalization.normalized_tokens,
             "special": name not in normalization.normalized_tokens}
            for name in sorted({*SPECIAL_TOKENS, *added}, key=ids.__getitem__)],
        "normalizer": {"type": "Sequence", "normalizers": [
            *([_FINAL_SIGMA] if has_sigma else []),
            {**_BERT_NORMALIZER, "strip_accents": normalization.strip_accents,
             "lowercase": normalization.lower_case},
            *([_NFC] if normalization.nfc else [])]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            _BERT_SPLIT, _LONG_WORD_SPLIT]} if normalization.nfc else _BERT_SPLIT,
        "post_processor": _row_template(ids),
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": False},
        "model": {"type": "WordPiece", "unk_token": UNK,
                  "continuing_subword_prefix": CONTINUATION,
                  "max_input_chars_per_word": normalization.max_word_characters,
                  "vocab": {name: index for name, index in ids.items() if index < size}}})


def write_exact_text(text: TextSettings, directory: Path, max_length: int) -> None:
    """Writes a tokenizer with which the library `tokenizers` gives the ids of `text.tokenizer`.

    The library's own tables are of older Unicode versions, and its special tokens are searched for
    in texts. More steps with newer tables remove these differences, apart from U+166D, U+1734 and
    U+111C9; `read_text` does not read them.
    """
    def remove(pattern: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": {"Regex": pattern}, "content": ""}

    write_text(text, directory, max_length)
    normalization = text.normalization
    file = json.loads((directory / TOKENIZER_FILE).read_bytes())
    steps = file["normalizer"]["normalizers"]
    # Characters that the first step keeps; accents are removed after BERT's step has decomposed
    # letters.
    kept = _KEPT + (r"\p{Mc}\p{Me}" if normalization.strip_accents else r"\p{M}")
    steps.insert(0, remove(rf"[^{kept}]|\x{{FFFD}}"))
    last = len(steps) - normalization.nfc
    steps[last:last] = [*([remove(r"\p{Mn}")] if normalization.strip_accents else []),
                        *([remove(r"\p{M}{31,}")] if normalization.nfc else [])]
    # Words end at all punctuation and Chinese characters of newer tables.
    splits = file["pre_tokenizer"].get("pretokenizers", [file["pre_tokenizer"]])
    splits.insert(1, {**_LONG_WORD_SPLIT, "pattern": {"Regex": _WORDS}})
    write_json(directory / TOKENIZER_FILE, file | {
        "added_tokens": [token for token in file["added_tokens"]
                         if token["content"] not in SPECIAL_TOKENS],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits}})


def _row_template(ids: Mapping[str, int]) -> dict[str, Any]:
    """Returns the post_processor: [CLS] text [SEP], or [CLS] text [SEP] text [SEP]."""
    # Segments 0, 0, 0, 1, 1.
    first, second = ({"Sequence": {"id": name, "type_id": segment}}
                     for segment, name in enumerate("AB"))
    cls, first_sep, second_sep = ({"SpecialToken": {"id": token, "type_id": segment}}
                                  for token, segment in ((CLS, 0), (SEP, 0), (SEP, 1)))
    return {"type": "TemplateProcessing", "single": [cls, first, first_sep],
            "pair": [cls, first, first_sep, second, second_sep],
            "special_tokens": {token: {"id": token, "ids": [ids.get(token)], "tokens": [token]}
                               for token in (CLS, SEP)}}
