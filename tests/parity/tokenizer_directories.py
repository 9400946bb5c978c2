"""Tokenizers' directories in every accepted form, and texts in ten scripts.

`python -m tests.parity.tokenizer_directories` in the peers' environment, with tokenizers 0.23.3 and
transformers 5.23.0, writes golden/tokenizer_ids.json: the ids that AutoTokenizer gives.
"""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden" / "tokenizer_ids.json"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXTS = [
    "The Café naïve façade, İstanbul ÅNGSTRÖM ﬁne — e\u0301te\u0301!", "Ёлка, Москва; ЩИ й",
    "ΟΔΟΣ ΣΊΣΥΦΟΣ Άνθρωπος, ΣΑΣ!", "السَّلامُ عليكم، أَهلاً", "שָׁלוֹם עולם, מה־שלומך?",
    "हिन्दी में लिखा, क्षत्रिय।", "ภาษาไทย" * 20 + " ที่นี่", "中文分词，新冠疫情abc。",
    "日本語のテキストが、ガギグ。ｶﾞ", "한국어 문장입니다.",
    "😀👩\u200d👩\u200d👧 🇩🇪 a\u200db ❤️", "a\x00b\x01c\x0b d\x1ce\x85f\u2028g\u200bh\ufeffi\ufffdj",
    "x" * 100 + " " + "y" * 101 + " " + "é" * 100, "tab\tline\r\nno\u00a0break\u3000id",
    "heparinized HEPARIN heparinheparin covid-19 COVID-19 new york New  York",
    "<user> <USER> <user>s [E1] Berlin [/E1] [e1]Berlin"]
_LETTERS = sorted(letter for letter in {*"".join(TEXTS).lower(), *"".join(TEXTS), *"еи"}
                  if letter.strip(" \t\r\n\x00\x0b\x1c\x85\xa0\u2028\u3000"))
TOKENS = [*SPECIAL, *_LETTERS, *(f"##{letter}" for letter in _LETTERS), "cafe", "café", "##19"]
SIZE = len(TOKENS)


def added(*contents: str, special: bool = False) -> list[dict]:
    """Returns added tokens with the next ids."""
    return [{"id": SIZE + index, "content": content, "single_word": False, "lstrip": special,
             "rstrip": special, "normalized": not special, "special": special}
            for index, content in enumerate(contents)]


def library_file(lower: bool, characters: int = 100, tokens: Sequence[dict] = ()) -> dict:
    """Returns a tokenizer.json."""
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(tokens),
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "strip_accents": None,
                           "handle_chinese_chars": True, "lowercase": lower},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": characters,
                      "vocab": {token: index for index, token in enumerate(TOKENS)}}}


_FAST = {"tokenizer_class": "PreTrainedTokenizerFast"}
_WORDS = added("heparin", "covid-19", "new york", "<user>", "新冠", "Café", "ภาษา", "ΣΊΣΥΦΟΣ")
_MARKERS = added("[E1]", "[/E1]", "<user>", special=True)
FORMS = {
    "uncased": {"tokenizer_config": {}}, "no_files": {},
    "cased": {"tokenizer_config": {"do_lower_case": False}},
    "keep_accents": {"tokenizer_config": {"strip_accents": False}},
    "cased_json": {"tokenizer_config": _FAST, "tokenizer": library_file(False)},
    "long_words": {"tokenizer_config": _FAST, "tokenizer": library_file(True, 200)},
    "config_wins": {"tokenizer_config": {"tokenizer_class": "BertTokenizer",
                                         "do_lower_case": False}, "tokenizer": library_file(True)},
    "config_wins_by_default": {"tokenizer_config": {}, "tokenizer": library_file(False)},
    "added_tokens": {"tokenizer_config": {}, "added_tokens": {
        token["content"]: token["id"] for token in _WORDS[:4]}},
    "added_cased": {"tokenizer_config": _FAST, "tokenizer": library_file(False, 100, _WORDS)},
    "added_uncased": {"tokenizer_config": _FAST, "tokenizer": library_file(True, 100, _WORDS)},
    "special": {"tokenizer_config": {
        "additional_special_tokens": ["[E1]", "[/E1]"],
        "added_tokens_decoder": {str(token["id"]): token for token in _MARKERS}}},
}
"""File names without .json, and contents, of each directory; those without tokenizer.json
have vocab.txt."""


def write(root: Path) -> list[Path]:
    """Writes all directories; returns them in the order of `FORMS`."""
    for name, files in FORMS.items():
        directory = root / name
        directory.mkdir()
        for file, content in ({"config": {"model_type": "electra"}} | files).items():
            (directory / f"{file}.json").write_text(json.dumps(content))
        if "tokenizer" not in files:
            (directory / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    return [root / name for name in FORMS]


def library_ids(root: Path) -> dict[str, list[list[int]]]:
    """Returns what AutoTokenizer gives for each directory."""
    import transformers

    transformers.logging.set_verbosity_error()
    return {path.name: transformers.AutoTokenizer.from_pretrained(path)(
        TEXTS, add_special_tokens=False)["input_ids"] for path in write(root)}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        GOLDEN.write_text("{" + ",\n".join(f'"{name}": {json.dumps(ids)}' for name, ids in
                                           library_ids(Path(scratch)).items()) + "}\n")
