"""Writes a tokenizer.json with which the library `tokenizers` gives the ids of `text.tokenizer`.

`formats.hugging_face_tokenizer` writes the steps that transformers has too. The library's own
tables are of older Unicode versions, and its special tokens are searched for in texts. Additional
steps with newer tables remove these differences, apart from U+166D, U+1734 and U+111C9.
"""

import json
import pathlib
from typing import Any

from electra_tf.formats.hugging_face_tokenizer import TOKENIZER_FILE, write_text
from electra_tf.platform.atomic_file import write_json
from electra_tf.text.tokenization import TextSettings
from electra_tf.text.vocabulary import SPECIAL_TOKENS

_KEPT = r"\p{L}\p{N}\p{P}\p{S}\p{Z}\t\n\r"
_BEFORE = "|".join(rf"\p{{Cased}}\p{{Case_Ignorable}}{{{count}}}" for count in range(5))
_FINAL_SIGMA = rf"(?<={_BEFORE})Σ(?!\p{{Case_Ignorable}}*\p{{Cased}})"
"""Capital sigma at the end of a word (Unicode, section 3.13, Final_Sigma)."""
_WORDS = r"\p{P}|[\x{2B820}-\x{2B91F}]"
"""Punctuation and Chinese characters; the library leaves out some of both."""


def write(text: TextSettings, directory: pathlib.Path, max_length: int) -> None:
    """Writes all files of the tokenizer."""
    write_text(text, directory, max_length)
    path, normalization = directory / TOKENIZER_FILE, text.normalization
    content = json.loads(path.read_bytes())
    bert = next(step for step in content["normalizer"]["normalizers"]
                if step["type"] == "BertNormalizer")
    kept = _KEPT + (r"\p{Mc}\p{Me}" if normalization.strip_accents else r"\p{M}")
    steps = [_replace(rf"[^{kept}]|\x{{FFFD}}")]
    if normalization.lower_case and normalization.final_sigma:
        steps.append(_replace(_FINAL_SIGMA, "ς"))
    steps.append(bert)
    if normalization.strip_accents:
        steps.append(_replace(r"\p{Mn}"))
    if normalization.nfc:
        steps += [_replace(r"\p{M}{31,}"), {"type": "NFC"}]
    splits = content["pre_tokenizer"].get("pretokenizers", [content["pre_tokenizer"]])
    splits.insert(1, {"type": "Split", "pattern": {"Regex": _WORDS}, "behavior": "Isolated",
                      "invert": False})
    write_json(path, content | {
        "added_tokens": [token for token in content["added_tokens"]
                         if token["content"] not in SPECIAL_TOKENS],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits}})


def _replace(pattern: str, content: str = "") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
