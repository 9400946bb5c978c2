"""Learns a WordPiece vocabulary with tensorflow-text's learner, from our own word counts."""

import collections
import functools
import re

from data_prep.cleaning.plan import NO_CLEANING, CleaningPlan
from data_prep.cleaning.settings import CleaningSettings
from data_prep.progress import ByteProgress
from data_prep.sources.source import Source
from data_prep.work_units import Piece, Runner, pieces_of, read_bytes
from electra_tf.errors import UserError
from electra_tf.text import coverage
from electra_tf.text.normalization import Normalization
from electra_tf.text.vocabulary import CONTINUATION, SPECIAL_TOKENS, Vocabulary

SMALLEST_VOCABULARY = 100
LARGEST_VOCABULARY = 1_000_000
_UNIT_BYTES = 8 << 20
_MOST_CHARACTERS = 1000
"""Different characters, as BERT's; each takes two tokens: alone and as "##" piece. A vocabulary
gives them half of its room at most."""
_WORDS_PER_TOKEN = 10
"""The commonest words so many times the vocabulary's size are learned from: rarer ones change
almost nothing and take nearly all of the time."""
_CONJOINING = re.compile("[\u1100-\u11ff]")
_SEARCH = 4
"""The least count of a token is looked for between the count of the vocab_size-th commonest word
and so many times that; it was 1.8 to 2.0 times that for 1,000 to 8,000 tokens."""
_SLACK = 0.02
"""The learner stops at a size within this part below the one asked for."""


def count_corpus_words(
    source: Source, normalization: Normalization, runner: Runner,
    line_rules: CleaningSettings = NO_CLEANING.settings
) -> collections.Counter[bytes]:
    """Returns how often each word of a text occurs; the same for every runner.

    Args:
        source: the text.
        normalization: how the tokenizer reads it.
        runner: does the work.
        line_rules: measures of cleaning that look at a line alone.

    Raises:
        UserError: the text can't be read, or it (or what cleaning leaves of it) holds no word.
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


def korean_warning(counts: collections.Counter[bytes]) -> str:
    """Returns what to say of words in which Korean syllables were taken apart; "" if they are few.

    Conjoining letters stand in no text but where stripping accents put them.
    """
    korean = sum(count for word, count in counts.items() if _CONJOINING.match(word.decode()))
    return coverage.hangul_warning(korean, counts.total(), unit="words")


def check_size(vocab_size: int) -> None:
    """Raises UserError if no vocabulary of that size can be learned."""
    if not SMALLEST_VOCABULARY <= vocab_size <= LARGEST_VOCABULARY:
        raise UserError(f"--vocab_size must be in [{SMALLEST_VOCABULARY}, {LARGEST_VOCABULARY}]. "
                        f"Received: {vocab_size}")


def learn(counts: collections.Counter[bytes], vocab_size: int) -> Vocabulary:
    """Learns WordPieces from word counts.

    Args:
        counts: word (UTF-8) -> how often it occurs.
        vocab_size: the most tokens, special ones included; fewer come out (2 % at most, more for
            little text).

    Returns:
        The special tokens first, then characters, then pieces by falling count.

    Raises:
        UserError: `vocab_size` is out of range, or too small for the text's characters.
    """
    check_size(vocab_size)
    # Here, because it imports TensorFlow Text.
    from tensorflow_text.tools.wordpiece_vocab import wordpiece_tokenizer_learner_lib as learner
    words = _commonest(counts, _WORDS_PER_TOKEN * vocab_size)
    rarest_word = words[min(vocab_size, len(words)) - 1][1]
    tokens = learner.learn(
        words, vocab_size, list(SPECIAL_TOKENS), lower_thresh=max(2, rarest_word),
        upper_thresh=max(2, _SEARCH * rarest_word), slack_ratio=_SLACK,
        max_unique_chars=min(_MOST_CHARACTERS, vocab_size // 4))
    return Vocabulary(tuple(_within(tokens, vocab_size)), source="the learned vocabulary")


def _commonest(counts: collections.Counter[bytes], most: int) -> list[tuple[str, int]]:
    """Returns the commonest words and their counts, in an order that is always the same."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [(word.decode(), count) for word, count in ranked[:most]]


def _within(tokens: list[str], vocab_size: int) -> list[str]:
    """Drops the last (rarest) pieces past `vocab_size`, but never a single character."""
    characters = [t for t in tokens if len(t.removeprefix(CONTINUATION)) == 1]
    pieces = [t for t in tokens if len(t.removeprefix(CONTINUATION)) > 1]
    room = vocab_size - len(characters)
    if room < len(SPECIAL_TOKENS):
        raise UserError(f"--vocab_size={vocab_size} has no room for the text's {len(characters)} "
                        f"single-character pieces; ask for at least {2 * len(characters)}.")
    return [*pieces[:len(SPECIAL_TOKENS)], *characters, *pieces[len(SPECIAL_TOKENS):room]]
