"""Worker: Hugging Face's `tokenizers` alone: no examples, no records, ids left where Rust has them.

Runs in the peers' environment.
"""

import os
import pathlib

from benchmarks.data_prep.workload import Prepared, Workload, Written, serve

_LINES = 1000
"""That are encoded at once."""


def prepare(workload: Workload) -> Prepared:
    """Loads the vocabulary."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers.implementations import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(workload.vocab_file, lowercase=True)._tokenizer

    def turn(text: pathlib.Path, scratch: pathlib.Path) -> Written:
        lines = text.read_text(encoding="utf-8").split("\n")
        tokens = 0
        for start in range(0, len(lines), _LINES):
            encoded = tokenizer.encode_batch_fast(
                lines[start:start + _LINES], add_special_tokens=False)
            tokens += sum(map(len, encoded))
        return Written(text_tokens=tokens)

    return Prepared(label="Hugging Face tokenizers, tokenization alone", turn=turn)


if __name__ == "__main__":
    serve(prepare)
