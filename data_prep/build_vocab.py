"""Learns a WordPiece vocabulary from text.

    python -m data_prep.build_vocab --input='corpus/*.txt' --output=vocab.txt --vocab_size=8000

Hardware: any CPU. One core with AVX-512 counts the words of 104 MB of text (19.6 million words,
219,000 different) in 20 s. It then learns 30,522 tokens in 11 s, or 8,192 in 10 s. Expect
--vocab_size tokens, or a note that the text has fewer; the same text always gives the same
vocabulary.
"""

import functools
import sys
import time
from typing import Annotated

from absl import flags
from annotated_types import Interval

from data_prep import local_runner, shared_flags, vocabulary_learner
from data_prep.settings import LINE_RULES, CleaningSettings
from electra_tf.core import atomic_file, command_line, errors, storage
from electra_tf.core.setting_flags import define_flags, from_flags
from electra_tf.core.settings import Section, require, setting
from electra_tf.text.normalization import NFC, TextSettings, normalization_from_flags

_MIN_LEARNED_TOKENS = 50


class VocabularySettings(Section, prefix="--"):
    """Settings of the vocabulary's size and file; flags have the same names."""

    output: str = setting("", "Vocabulary file to write, such as vocab.txt.")
    overwrite: bool = setting(False, "Replace --output if it exists.")
    vocab_size: Annotated[int, Interval(ge=100, le=1_000_000)] = setting(
        30522, "Number of tokens, including special and reserved tokens.")
    reserved_tokens: Annotated[int, Interval(ge=0, le=1_000_000)] = setting(
        0, """Number of entries [unused0], [unused1] and so on, as in BERT's vocabulary, for tokens
        that are added later.""")

    def __post_init__(self):
        super().__post_init__()
        maximum = self.vocab_size - _MIN_LEARNED_TOKENS
        require(self.reserved_tokens <= maximum, "--reserved_tokens",
                f"at most {maximum} of --vocab_size={self.vocab_size}", self.reserved_tokens)


define_flags(VocabularySettings)
define_flags(CleaningSettings, LINE_RULES)


def main() -> None:
    """Learns a vocabulary and prints a summary."""
    # The file to write.
    values = from_flags(VocabularySettings)
    if not values.output:
        raise errors.UserError("--output is missing; see --help for an example.")
    output = storage.path(values.output)
    if output.exists() and not values.overwrite:
        raise errors.UserError(f"{output} exists; give another --output, or --overwrite.")
    atomic_file.make_directory(output.parent)

    local_runner.quiet_tensorflow()
    start = time.monotonic()
    # Frequencies of words. NFC keeps all letters, from which a normalization can be chosen.
    normalization = normalization_from_flags(flags.FLAGS)
    source = shared_flags.source()
    runner = shared_flags.runner(output.with_name(f".beam-{output.name}"))
    counts = vocabulary_learner.count_corpus_words(
        source, normalization or NFC, runner, from_flags(CleaningSettings, LINE_RULES))
    if source.note:
        print(f"note: {source.note}", file=sys.stderr)
    counted = time.monotonic() - start
    print(f"{counts.total():,} words and punctuation marks, {len(counts):,} different ones, "
          f"counted in {counted:.1f} s")
    # Choose the normalization by the scripts of the words, and learn the pieces.
    if normalization is None:
        normalization, counts, reason = vocabulary_learner.choose_normalization(counts)
        print(f"normalization: {normalization} ({reason})")

    # The vocabulary.
    vocabulary = vocabulary_learner.learn(counts, values.vocab_size, values.reserved_tokens)
    TextSettings(vocabulary=vocabulary, normalization=normalization).save(output)
    print(f"{vocabulary.size:,} tokens learned in {time.monotonic() - start - counted:.1f} s: "
          f"{output}")
    if vocabulary.size < values.vocab_size:
        print(f"note: the text has only {vocabulary.size:,} tokens, because no other pair of "
              f"pieces occurs twice; --vocab_size={values.vocab_size} needs more text.",
              file=sys.stderr)


COMMON = "input", "output", "overwrite", "vocab_size", "normalization", "num_workers"
run = functools.partial(command_line.run, main, summary=__doc__, common=COMMON, groups={
    "Input and output": (*shared_flags.INPUT, "output", "overwrite"),
    "Vocabulary": ("vocab_size", "reserved_tokens", "normalization"),
    "Cleaning": LINE_RULES,
    "Speed": shared_flags.SPEED})

if __name__ == "__main__":
    run()
