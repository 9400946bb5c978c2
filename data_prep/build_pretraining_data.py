r"""Makes pre-training records from text.

    python -m data_prep.build_pretraining_data --input='corpus/*.txt' --vocab_file=vocab.txt \
        --output_dir=records --max_seq_length=128

Hardware: any CPU. The throughput for English text is 2.4 million tokens/s on one core with AVX-512
and 4.2 million on two; a token takes 2.6 bytes. A worker takes 0.8 GB of memory, the parent 0.2 GB,
for any amount of text. With BERT's 30,522-token vocabulary, expect 1.3 tokens per word, all of them
in the examples, and 0.0 % padding. 10 % of the examples have one segment. After an
interruption, the same command builds the missing shards.
"""

import functools
import sys
import time

from absl import flags

from data_prep import local_runner, record_builder, shared_flags, summary
from data_prep.settings import REFERENCE_SHORT_RATE, BuildSettings, CleaningSettings
from electra_tf.core import command_line, errors, signals, storage
from electra_tf.core.setting_flags import define_flags, from_flags
from electra_tf.core.settings import settings_of
from electra_tf.text.normalization import text_settings_from_flags

flags.DEFINE_string("vocab_file", "", "Vocabulary file, of data_prep.build_vocab or of a model.")
flags.DEFINE_string("output_dir", "", "Directory to write shards, vocab.txt and manifest.json to.")
define_flags(BuildSettings)
define_flags(CleaningSettings)
flags.DEFINE_bool("overwrite", False, "Replace the records in --output_dir.")


def main() -> None:
    """Builds records and prints a summary."""
    values = flags.FLAGS
    for name in ("vocab_file", "output_dir"):
        if not values[name].value:
            raise errors.UserError(f"--{name} is missing; see --help for an example.")
    try:
        # Read the vocabulary and the settings before the text, for early errors.
        local_runner.quiet_tensorflow()
        start = time.monotonic()
        text = text_settings_from_flags(values)
        output_dir = storage.utf8_path(values.output_dir)
        settings = from_flags(
            BuildSettings, cleaning=from_flags(CleaningSettings),
            short_example_rate=REFERENCE_SHORT_RATE if values.packing == "reference" else 0.0)

        # Records.
        source = shared_flags.source()
        result = record_builder.build_records(
            source, text, settings, output_dir,
            shared_flags.runner(output_dir / ".beam"), overwrite=values.overwrite)
    except signals.Interrupted as interrupted:
        raise signals.Interrupted(interrupted.number, (
            "interrupted; the finished shards are kept, and the same command builds the others: "
            f"{command_line.same_command()}")) from None

    if result is None:
        print(f"{values.output_dir} already holds the records of this text with these settings.")
        return
    # Counts, then what the user may want to change.
    print(summary.table(result, time.monotonic() - start))
    for note in filter(None, (source.note, summary.held_out_note(result))):
        print(f"note: {note}", file=sys.stderr)
    for warning in summary.warnings(result):
        print(f"warning: {warning}", file=sys.stderr)


COMMON = ("input", "vocab_file", "output_dir", "overwrite", "max_seq_length", "held_out_fraction",
          "drop_near_duplicates", "num_workers")
run = functools.partial(command_line.run, main, summary=__doc__, common=COMMON, groups={
    "Input and output": (*shared_flags.INPUT, "vocab_file", "output_dir", "overwrite"),
    "Examples": tuple(settings_of(BuildSettings)),
    "Text": ("normalization",),
    "Cleaning": tuple(settings_of(CleaningSettings)),
    "Speed": shared_flags.SPEED})

if __name__ == "__main__":
    run()
