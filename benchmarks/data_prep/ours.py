"""Worker: `data_prep.build_pretraining_data` with one worker, from file to manifest."""

import importlib
import pathlib

from benchmarks.data_prep.workload import Prepared, Workload, Written, serve
from data_prep import local_runner, record_builder, settings
from data_prep.sources.registry import open_source
from electra_tf.platform import storage
from electra_tf.text.tokenization import TextSettings


def prepare(workload: Workload) -> Prepared:
    """Loads the vocabulary and TensorFlow."""
    local_runner.quiet_tensorflow()
    importlib.import_module("data_prep.pipeline")  # With TensorFlow: it belongs to the start.
    settings_of_text = TextSettings.load(storage.path(workload.vocab_file))
    build = settings.BuildSettings(
        max_seq_length=workload.max_seq_length, packing=workload.packing,
        short_example_rate=settings.SHORT_EXAMPLE_RATES[workload.packing])

    def turn(text: pathlib.Path, scratch: pathlib.Path) -> Written:
        made = record_builder.build_records(
            open_source(str(text)), settings_of_text, build, scratch,
            local_runner.LocalRunner(num_workers=1))
        return Written(text_tokens=made.counts.text_tokens,
                       bytes=sum(shard.bytes for shard in made.shards))

    return Prepared(label=f"electra_tf, {workload.packing} packing", turn=turn)


if __name__ == "__main__":
    serve(prepare)
