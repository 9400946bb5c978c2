"""Worker: Hugging Face's `tokenizers` alone: no examples, no records, ids left where Rust has them.

Runs in the peers' environment.
"""

import os
import pathlib

from benchmarks.harness.worker import Ready, serve

_LINES = 1000
"""That are encoded at once."""


def prepare(vocab_file: str, max_seq_length: int) -> Ready:
    """Loads the vocabulary."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers.implementations import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(vocab_file, lowercase=True)._tokenizer

    def turn(text: str) -> dict[str, int]:
        lines = pathlib.Path(text).read_text(encoding="utf-8").split("\n")
        tokens = 0
        for start in range(0, len(lines), _LINES):
            encoded = tokenizer.encode_batch_fast(
                lines[start:start + _LINES], add_special_tokens=False)
            tokens += sum(map(len, encoded))
        return {"text_tokens": tokens}

    return Ready(label="tokenizers, tokenization alone", turn=turn)


if __name__ == "__main__":
    serve(prepare)
