"""Runs Hugging Face's `tokenizers` alone; the ids stay in Rust, without examples and records.

Runs in the environment of `make peers`.
"""

import pathlib

from tokenizers.implementations import BertWordPieceTokenizer

from benchmarks.harness.worker import Ready


def prepare(vocab_file: str, max_seq_length: int) -> Ready:
    """Loads the vocabulary and returns the turn; `max_seq_length` is not used."""
    tokenizer = BertWordPieceTokenizer(vocab_file, lowercase=True)._tokenizer

    def turn(text: str) -> dict[str, int]:
        lines = pathlib.Path(text).read_text(encoding="utf-8").split("\n")
        return {"text_tokens": sum(
            len(row) for start in range(0, len(lines), 1000) for row in
            tokenizer.encode_batch_fast(lines[start:start + 1000], add_special_tokens=False))}

    return Ready(label="tokenizers, tokenization alone", turn=turn)
