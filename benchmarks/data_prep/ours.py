"""Runs `data_prep.build_pretraining_data` with one worker, from file to manifest."""

import importlib
import pathlib
import tempfile

from benchmarks.harness.worker import Ready
from data_prep import local_runner, record_builder, settings
from data_prep.sources.registry import open_source
from electra_tf.platform import storage
from electra_tf.text.tokenization import TextSettings


def prepare(vocab_file: str, max_seq_length: int, packing: str) -> Ready:
    """Loads the vocabulary and TensorFlow, and returns the turn."""
    local_runner.quiet_tensorflow()
    importlib.import_module("data_prep.pipeline")  # It imports TensorFlow, outside the turns.
    text_settings = TextSettings.load(storage.path(vocab_file))
    build = settings.BuildSettings(
        max_seq_length=max_seq_length, packing=packing,
        short_example_rate=settings.SHORT_EXAMPLE_RATES[packing])

    def turn(text: str) -> dict[str, int]:
        with tempfile.TemporaryDirectory() as scratch:
            manifest = record_builder.build_records(
                open_source(text), text_settings, build, pathlib.Path(scratch),
                local_runner.LocalRunner(num_workers=1))
        return {"text_tokens": manifest.counts.text_tokens,
                "bytes": sum(shard.bytes for shard in manifest.shards)}

    return Ready(label=f"{packing} packing", turn=turn)
