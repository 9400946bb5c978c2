"""Counts the words of a corpus, and learns a WordPiece vocabulary from the counts.

Words start as characters, "a ##b ##c"; each merge makes the most frequent adjacent pair one piece
(Sennrich et al. 2016, "Neural machine translation of rare words with subword units"). A merge
updates only the counts that it changes: 30,000 pieces of 20 million words take seconds.
"""

import collections
import functools
import heapq
from collections.abc import Mapping

from data_prep.cleaning.plan import CleaningPlan
from data_prep.documents import batches
from data_prep.settings import CleaningSettings
from data_prep.sources.source import Source
from data_prep.work_units import CorpusPart, Progress, Runner, WordCounts, WorkUnit, split_corpus
from electra_tf.core.errors import UserError
from electra_tf.text import coverage
from electra_tf.text.normalization import NFC, Normalization
from electra_tf.text.vocabulary import CONTINUATION, MAX_WORD_CHARACTERS, SPECIAL_TOKENS, Vocabulary

MAX_WORDS = 4_000_000  # Different words kept at a time, about 500 MB.
UNKNOWN_COST = 50
"""Cost of an unknown word in pieces. With 8,192 pieces of Wikipedia and books, 0.012 % of the words
of held-out text are unknown at 1.220 pieces per word; a cost of 10 gives 0.016 % at 1.216, and 100
gives 0.010 % at 1.223."""
MAX_CHARACTERS = 4_000_000
"""Characters of the most frequent words, from which pieces are learned; 20 million words of English
have 219,000 different ones with 1.6 million characters."""
MAX_PIECE_CHARACTERS = 50  # As in tensorflow-text's learner; its tokenizer takes 256 bytes at most.
_MIN_PAIR_COUNT = 2  # Least count of a pair that becomes a piece.
_FIRST = 1 << 32  # A pair is the number `first * _FIRST + second`.
_UNIT_BYTES = 8 << 20
_BATCH_CHARACTERS = 1 << 19


def count_corpus_words(
    source: Source, normalization: Normalization, runner: Runner,
    line_rules: CleaningSettings = CleaningSettings()  # noqa: B008 (frozen)
) -> WordCounts:
    """Returns the count of each word of a text, the same for every runner.

    Raises `UserError` for an unreadable text, and for one without a word that `line_rules` keep.
    """
    count = functools.partial(count_words, normalization=normalization,
                              cleaning=CleaningPlan(line_rules))
    parts = split_corpus(source)
    cut = functools.partial(CorpusPart.units, unit_bytes=_UNIT_BYTES)
    progress, words = Progress(source, parts), 0
    counts: WordCounts = collections.Counter()
    for unit_counts in runner.add_up(parts, cut, count):
        words += unit_counts.total()
        progress.update({"words": words})
        counts.update(unit_counts)
        if len(counts) > MAX_WORDS:
            counts = without_rarest(counts, MAX_WORDS // 2)
    if not counts:
        raise UserError("--input holds no word: every line is blank, dropped by cleaning or, with "
                        "--on_error=skip, in a damaged document; give files with text.")
    return counts


def count_words(unit: WorkUnit, normalization: Normalization,
                cleaning: CleaningPlan = CleaningPlan()) -> WordCounts:  # noqa: B008 (frozen)
    """Returns the count of each normalized word in a unit; `UserError` for a damaged text."""
    splitter = _splitter(normalization)
    counts: WordCounts = collections.Counter()
    for batch in batches(cleaning.clean(unit, collections.Counter()), _BATCH_CHARACTERS):
        counts.update(splitter.words(batch).flat_values.numpy().tolist())
    return counts


def without_rarest(counts: WordCounts, max_words: int) -> WordCounts:
    """Drops all words up to the smallest count that leaves at most `max_words` of them."""
    kept, threshold = len(counts), 0
    for count, words in sorted(collections.Counter(counts.values()).items()):
        if kept <= max_words:
            break
        kept, threshold = kept - words, count
    return collections.Counter({word: n for word, n in counts.items() if n > threshold})


def choose_normalization(counts: WordCounts) -> tuple[Normalization, WordCounts, str]:
    """Returns a normalization, the counts under it, and the reason, from counts under `NFC`."""
    chosen, reason = coverage.propose_normalization(coverage.count_characters_of_words(counts))
    if chosen == NFC:
        return chosen, counts, reason
    # Words that the normalization makes equal, or splits, are counted again.
    splitter = _splitter(chosen)
    total: WordCounts = collections.Counter()
    for batch in batches((word.decode() for word in counts), _BATCH_CHARACTERS):
        words = splitter.words(batch)
        for word, index in zip(words.flat_values.numpy().tolist(),
                               words.value_rowids().numpy().tolist(), strict=True):
            total[word] += counts[batch[index].encode()]
    return chosen, total, reason


@functools.lru_cache(maxsize=2)
def _splitter(normalization: Normalization):
    # Only the processes that split words need TensorFlow, which takes 400 MB.
    from electra_tf.text.tokenizer import WordSplitter

    return WordSplitter(normalization)


def learn(counts: Mapping[bytes, int], vocab_size: int, reserved_tokens: int = 0) -> Vocabulary:
    """Returns a vocabulary of `vocab_size` tokens, fewer if no other pair occurs twice.

    The order is special tokens, `reserved_tokens` entries [unused0] and so on, single characters by
    falling count, and longer pieces in the order of merges. The most frequent words of up to
    `MAX_WORD_CHARACTERS` are used, `MAX_CHARACTERS` in all.

    Each step adds the most frequent pair or character; a character counts `UNKNOWN_COST` times.
    Characters are at most half of the pieces. Of equal counts, the piece of more frequent
    characters is first, then the first in Unicode order: the order of `counts` has no effect.
    """
    # The most frequent words as characters, a ##b ##c, and the counts of words and characters.
    words: list[tuple[list[str], int]] = []
    character_counts: collections.Counter[str] = collections.Counter()
    characters = 0
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        text = word.decode()
        characters += len(text)
        if characters > MAX_CHARACTERS:
            break
        if len(text) <= MAX_WORD_CHARACTERS:
            pieces = [text[0], *(CONTINUATION + character for character in text[1:])]
            words.append((pieces, count))
            for piece in pieces:
                character_counts[piece] += count
    # Characters by falling count; all are known to the pairs, but only the first become tokens.
    ranked = sorted(character_counts.items(), key=lambda item: (-item[1], item[0]))
    tokens = [character for character, _ in ranked]
    pairs = _Pairs(words, tokens)
    # Where it occurs, a merged pair saves one piece, and a character UNKNOWN_COST.
    max_pieces = vocab_size - len(SPECIAL_TOKENS) - reserved_tokens
    max_characters = min(max(1, max_pieces // 2), len(ranked))
    characters = merged = 0
    while characters + merged < max_pieces:
        pair, count = pairs.most_frequent()
        if characters < max_characters and UNKNOWN_COST * ranked[characters][1] >= count:
            characters += 1
        elif count < _MIN_PAIR_COUNT:
            break
        else:
            merged += pairs.merge(pair)
    reserved = [f"[unused{number}]" for number in range(reserved_tokens)]
    return Vocabulary((*SPECIAL_TOKENS, *reserved, *tokens[:characters], *tokens[len(ranked):]),
                      source="the learned vocabulary")


class _Pairs:
    """Words as pieces, and the count of every adjacent pair; merges add to `tokens`."""

    def __init__(self, words: list[tuple[list[str], int]], tokens: list[str]):
        self._tokens = tokens
        self._numbers = {token: number for number, token in enumerate(tokens)}
        self._words = [[self._numbers[piece] for piece in pieces] for pieces, _ in words]
        self._word_counts = [count for _, count in words]
        self._counts: dict[int, int] = collections.defaultdict(int)
        self._words_with: dict[int, set[int]] = collections.defaultdict(set)
        for index, word in enumerate(self._words):
            for first, second in zip(word, word[1:], strict=False):
                self._add(first * _FIRST + second, index)
        self._heap = [(-count, pair) for pair, count in self._counts.items()]
        heapq.heapify(self._heap)

    def most_frequent(self) -> tuple[int, int]:
        """Returns the most frequent pair and its count, 0 without a pair."""
        while self._heap:
            # Merges leave old counts in the heap, which are corrected when they come up.
            noted, pair = self._heap[0]
            count = self._counts.get(pair, 0)
            is_current = count == -noted
            if is_current and len(self._merged(pair).removeprefix(CONTINUATION)
                                  ) <= MAX_PIECE_CHARACTERS:
                return pair, count
            heapq.heappop(self._heap)
            if count and not is_current:  # Merges reduced it; an increased count has an entry.
                heapq.heappush(self._heap, (-count, pair))
        return 0, 0

    def merge(self, pair: int) -> bool:
        """Replaces a pair by one piece in all words; returns True if the piece is new."""
        token = self._merged(pair)
        is_new = token not in self._numbers  # "a ##bc" and "ab ##c" give one piece.
        if is_new:
            self._numbers[token] = len(self._tokens)
            self._tokens.append(token)
        merged = self._numbers[token]
        first, second = divmod(pair, _FIRST)
        # a b c d with the pair (b, c) -> a bc d: its count moves from (a, b) to (a, bc), and from
        # (c, d) to (bc, d).
        increased: set[int] = set()
        for index in self._words_with.pop(pair):
            word, count, at = self._words[index], self._word_counts[index], 0
            while at < len(word) - 1:
                if word[at] == first and word[at + 1] == second:
                    if at:
                        self._counts[word[at - 1] * _FIRST + first] -= count
                        increased.add(self._add(word[at - 1] * _FIRST + merged, index))
                    if at + 2 < len(word):
                        self._counts[second * _FIRST + word[at + 2]] -= count
                        increased.add(self._add(merged * _FIRST + word[at + 2], index))
                    word[at:at + 2] = [merged]
                at += 1
        del self._counts[pair]
        for other in increased:
            heapq.heappush(self._heap, (-self._counts[other], other))
        return is_new

    def _merged(self, pair: int) -> str:
        first, second = divmod(pair, _FIRST)
        return self._tokens[first] + self._tokens[second].removeprefix(CONTINUATION)

    def _add(self, pair: int, index: int) -> int:
        self._counts[pair] += self._word_counts[index]
        self._words_with[pair].add(index)
        return pair
