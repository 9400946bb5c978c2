"""Turns text into records, or into token ids alone, by every system of the benchmark.

Libraries are imported where they are used, because PyTorch has an environment of its own.
"""

import os
import pathlib
import tempfile
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from benchmarks import system


def prepare(name: str, text: str, vocab_file: str, max_seq_length: int) -> system.Work:
    """Returns one pass over the text by a packing of ours or by another system."""
    if name == "hf-tokenizers":
        return _hugging_face(text, vocab_file)
    return _ours(text, vocab_file, max_seq_length, packing=name)


def _ours(text: str, vocab_file: str, max_seq_length: int, packing: str) -> system.Work:
    """Runs `data_prep.build_pretraining_data` with one worker, from file to manifest."""
    from data_prep import local_runner, record_builder, settings
    from data_prep.sources.registry import open_source
    from electra_tf.core import storage
    from electra_tf.text.normalization import TextSettings

    local_runner.quiet_tensorflow()
    text_settings = TextSettings.load(storage.path(vocab_file))
    build = settings.BuildSettings(
        max_seq_length=max_seq_length, packing=packing,
        short_example_rate=settings.SHORT_EXAMPLE_RATES[packing])

    def work() -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory() as scratch:
            manifest = record_builder.build_records(
                open_source(text), text_settings, build, pathlib.Path(scratch),
                local_runner.LocalRunner(num_workers=1))
        return {"label": f"electra_tf, {packing} packing", "tokens": manifest.counts.text_tokens,
                "bytes": sum(shard.bytes for shard in manifest.shards),
                "versions": {"TensorFlow Text": metadata.version("tensorflow-text")}}

    return work


def _hugging_face(text: str, vocab_file: str) -> system.Work:
    """Runs Hugging Face's `tokenizers` alone; the ids stay in Rust, without records."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers.implementations import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(vocab_file, lowercase=True)._tokenizer

    def work() -> Mapping[str, Any]:
        lines = pathlib.Path(text).read_text(encoding="utf-8").split("\n")
        return {"label": "Hugging Face tokenizers, tokenization alone", "tokens": sum(
            len(row) for start in range(0, len(lines), 1000) for row in
            tokenizer.encode_batch_fast(lines[start:start + 1000], add_special_tokens=False)),
            "versions": {"tokenizers": metadata.version("tokenizers")}}

    return work


if __name__ == "__main__":
    system.run(prepare)
