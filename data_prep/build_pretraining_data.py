r"""Makes pre-training records from text.

    python -m data_prep.build_pretraining_data --input='corpus/*.txt' --vocab_file=vocab.txt \
        --output_dir=records --max_seq_length=128

Hardware: any CPU. Two cores of a shared machine took 21 s for 114 MB of English text (19 million
words, 25 million tokens: 1.2 million tokens/s), 65 MB of records. A worker takes 0.8 GB of memory
and the rest 0.2 GB, for 18 MB of text as for 456 MB. Expect, with BERT's 30,522-word vocabulary,
1.3 tokens per word, 100 % of them in the examples, 0.0 % padding, and 10 % of the examples of one
segment. Interrupted? The same command makes the shards that are missing.
"""

import sys
import time

from absl import flags

from data_prep import (
    cleaning_flags,
    local_runner,
    record_builder,
    runner_flags,
    settings,
    summary,
    text_flags,
)
from data_prep.documents import ReadingNotes
from data_prep.sources import several
from electra_tf.platform import command_line, errors, signals, storage
from electra_tf.text.normalization import FLAGS
from electra_tf.text.tokenization import TextSettings

_DEFAULT = settings.BuildSettings()

flags.DEFINE_string("vocab_file", "", "The vocabulary, from data_prep.build_vocab or a model's.")
flags.DEFINE_string("output_dir", "", "Where shards, vocab.txt and manifest.json go.")
flags.DEFINE_integer("max_seq_length", _DEFAULT.max_seq_length, "Tokens of an example.")
flags.DEFINE_string("packing", _DEFAULT.packing,
                    "full: examples without padding, documents run on with a [SEP] between them. "
                    "reference: as ELECTRA's own builder, documents not mixed, some padding.")
flags.DEFINE_float("held_out_fraction", _DEFAULT.held_out_fraction,
                   "Part of the documents kept from training, for --mode=eval; of few documents "
                   "at least one, unless 0.")
flags.DEFINE_float("single_segment_rate", _DEFAULT.single_segment_rate,
                   "Part of the examples that get one segment instead of two.")
flags.DEFINE_float("short_example_rate", None,
                   "Part of the examples that get a random shorter length; --packing=reference "
                   "only, 0.05 there if not given.")
flags.DEFINE_integer("seed", _DEFAULT.seed, "Decides the random choices.")
flags.DEFINE_integer("shard_text_bytes", _DEFAULT.shard_text_bytes,
                     "Bytes of text that make one shard.")
flags.DEFINE_bool("overwrite", False, "Replace another build in --output_dir.")

GROUPS = {
    "Input and output": (*text_flags.INPUT, "vocab_file", "output_dir", "overwrite"),
    "Examples": ("max_seq_length", "packing", "single_segment_rate", "short_example_rate",
                 "held_out_fraction", "seed"),
    "Text": FLAGS,
    "Cleaning": cleaning_flags.CLEANING,
    "Speed": (*runner_flags.NAMES, "shard_text_bytes"),
}


def main() -> None:
    """Builds the records that the flags ask for and prints a summary."""
    try:
        _build(flags.FLAGS)
    except signals.Interrupted as interrupted:
        raise signals.Interrupted(interrupted.number, (
            "interrupted; the shards that are finished are kept, and the same command makes the "
            f"others: {command_line.same_command()}")) from None


def _build(values: flags.FlagValues) -> None:
    for name in ("vocab_file", "output_dir"):
        if not values[name].value:
            raise errors.UserError(f"--{name} is missing; see --help for an example.")
    local_runner.quiet_tensorflow()
    start = time.monotonic()
    text = TextSettings.of_flags(values)
    output_dir = storage.path(values.output_dir)
    source = text_flags.source()
    result = record_builder.build_records(
        source, text, _settings(values), output_dir,
        runner_flags.runner(output_dir / ".beam"), overwrite=values.overwrite)
    if result is None:
        print(f"{values.output_dir} is finished with these settings and this text; nothing to do.")
        return
    print(summary.table(result, time.monotonic() - start))
    for note in (several.note_of(source), summary.held_out_note(result)):
        if note:
            print(f"note: {note}", file=sys.stderr)
    skipped = ReadingNotes(result.counts.skipped_documents, list(result.skipped))
    if skipped.skipped:
        print(f"warning: {skipped.summary()}", file=sys.stderr)
    for warning in summary.text_warnings(result):
        print(f"warning: {warning}", file=sys.stderr)


def _settings(values: flags.FlagValues) -> settings.BuildSettings:
    short_rate = values.short_example_rate
    if short_rate is None:
        short_rate = settings.SHORT_EXAMPLE_RATES.get(values.packing, 0.0)
    return settings.BuildSettings(
        max_seq_length=values.max_seq_length, packing=values.packing,
        held_out_fraction=values.held_out_fraction,
        shard_text_bytes=values.shard_text_bytes, single_segment_rate=values.single_segment_rate,
        short_example_rate=short_rate, seed=values.seed, cleaning=cleaning_flags.cleaning())


if __name__ == "__main__":
    command_line.run(main, summary=__doc__, groups=GROUPS)
