"""Counts the words of a corpus, and learns a WordPiece vocabulary from the counts."""

import collections
import functools
import re

from data_prep import piece_merges
from data_prep.cleaning.plan import NO_CLEANING, CleaningPlan
from data_prep.cleaning.settings import CleaningSettings
from data_prep.progress import ByteProgress
from data_prep.sources.source import Source
from data_prep.work_units import Piece, Runner, pieces_of, read_bytes
from electra_tf.platform.errors import UserError
from electra_tf.text import coverage
from electra_tf.text.tokenization import NFC, Normalization
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary

_UNIT_BYTES = 8 << 20
_CONJOINING = re.compile("[\u1100-\u11ff]")


def count_corpus_words(
    source: Source, normalization: Normalization, runner: Runner,
    line_rules: CleaningSettings = NO_CLEANING.settings
) -> collections.Counter[bytes]:
    """Returns how often each word of a text occurs; the same for every runner.

    Raises:
        UserError: the text cannot be read, or it (or what `line_rules` leave of it) holds no word.
    """
    # Here, because only the processes that split words need TensorFlow.
    from data_prep import word_counter
    count = functools.partial(word_counter.count_words, normalization=normalization,
                              cleaning=CleaningPlan(line_rules))
    pieces = pieces_of(source)
    cut = functools.partial(Piece.units, unit_bytes=_UNIT_BYTES)
    progress = ByteProgress(source.size)

    def parts():
        words = 0
        for part in runner.add_up(pieces, cut, count):
            words += part.total()
            progress.update(read_bytes(pieces), {"words": words})
            yield part

    counts = word_counter.merge_counts(parts())
    if not counts and line_rules.measures():
        raise UserError("cleaning leaves no word of --input; use fewer of its measures "
                        f"({', '.join(line_rules.measures())}).")
    if not counts:
        raise UserError("--input holds no word: every line is blank or, with --on_error=skip, in "
                        "a damaged document; give files with text.")
    return counts


def choose_normalization(counts: collections.Counter[bytes]
                         ) -> tuple[Normalization, collections.Counter[bytes], str]:
    """Returns normalization, counts and reason, from counts under `normalization.NFC`."""
    from data_prep import word_counter
    characters = coverage.count_characters_of_words(counts)
    chosen = coverage.proposed(characters)
    if chosen != NFC:
        counts = word_counter.normalized_counts(counts, chosen)
    return chosen, counts, coverage.described(characters)


def korean_warning(counts: collections.Counter[bytes]) -> str:
    """Returns a warning if stripping accents took Korean syllables apart, otherwise ""."""
    korean = sum(count for word, count in counts.items() if _CONJOINING.match(word.decode()))
    if korean <= coverage.MOST_CHANGED * counts.total():
        return ""
    return (f"{korean / counts.total():.0%} of the words are Korean, whose syllables are taken "
            "apart where accents are stripped; --normalization=nfc, which --normalization=auto "
            "chooses, leaves them whole.")


def learn(counts: collections.Counter[bytes], vocab_size: int, reserved_tokens: int = 0
          ) -> Vocabulary:
    """Returns a vocabulary of `vocab_size` tokens, fewer if no other pair occurs twice.

    The order is special tokens, `reserved_tokens` entries [unused0] and so on, characters, and
    longer pieces by about falling count.
    """
    reserved = [f"[unused{number}]" for number in range(reserved_tokens)]
    pieces = piece_merges.learn_pieces(counts, vocab_size - len(SPECIAL_TOKENS) - reserved_tokens)
    return Vocabulary((*SPECIAL_TOKENS, *reserved, *pieces.characters, *pieces.merged),
                      source="the learned vocabulary")
