"""tokenizer.json for text that is composed (NFC), which tokenizer_config.json has no word for.

The steps of the file, which Hugging Face's `tokenizers` runs, are `text.tokenizer`'s: BERT's
cleaning, NFC, BERT's splitting, long words cut, WordPiece.
"""

from typing import Any

from electra_tf.checkpoints.pretrained import TextSettings
from electra_tf.text.tokenizer import LONG_WORD_CUT
from electra_tf.text.vocabulary import (
    CLS,
    CONTINUATION,
    MAX_WORD_CHARACTERS,
    SEP,
    SPECIAL_TOKENS,
    UNK,
    Vocabulary,
)

TOKENIZER_CLASS = "PreTrainedTokenizerFast"
"""Does what tokenizer.json says; `ElectraTokenizer` makes its own of vocab.txt."""


def content(text: TextSettings) -> dict[str, Any]:
    """Returns the content of tokenizer.json."""
    normalization, vocabulary = text.normalization, text.vocabulary
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [
            {"id": vocabulary.ids[token], "content": token, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True} for token in SPECIAL_TOKENS],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
             "strip_accents": normalization.strip_accents, "lowercase": normalization.lower_case},
            {"type": "NFC"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "BertPreTokenizer"},
            {"type": "Split", "pattern": {"Regex": LONG_WORD_CUT}, "behavior": "Isolated",
             "invert": False}]},
        "post_processor": _post_processor(vocabulary),
        "decoder": {"type": "WordPiece", "prefix": CONTINUATION, "cleanup": False},
        "model": {"type": "WordPiece", "unk_token": UNK, "continuing_subword_prefix": CONTINUATION,
                  "max_input_chars_per_word": MAX_WORD_CHARACTERS, "vocab": vocabulary.ids}}


def _post_processor(vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns [CLS] text [SEP] and [CLS] text [SEP] text [SEP], the second text of segment 1."""
    def special(token: str, segment: int = 0) -> dict[str, Any]:
        return {"SpecialToken": {"id": token, "type_id": segment}}

    first, second = ({"Sequence": {"id": name, "type_id": segment}}
                     for segment, name in enumerate("AB"))
    single = [special(CLS), first, special(SEP)]
    return {"type": "TemplateProcessing", "single": single,
            "pair": [*single, second, special(SEP, 1)],
            "special_tokens": {token: {"id": token, "ids": [vocabulary.ids[token]],
                                       "tokens": [token]} for token in (CLS, SEP)}}
