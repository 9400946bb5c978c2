"""Learns WordPieces from word counts by merging the most frequent adjacent pieces.

Words start as characters, "a ##b ##c"; each merge makes the most frequent adjacent pair one piece
(Sennrich et al. 2016, "Neural machine translation of rare words with subword units"). A merge
updates only the counts that it changes: 30,000 pieces of 20 million words take seconds.
"""

import collections
import heapq
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from electra_tf.text.vocabulary import CONTINUATION, MAX_WORD_CHARACTERS

UNKNOWN_COST = 50
"""Cost of an unknown word in pieces. With 8,192 pieces of Wikipedia and books, 0.012 % of the words
of held-out text are unknown at 1.220 pieces per word; a cost of 10 gives 0.016 % at 1.216, and 100
gives 0.010 % at 1.223."""
MOST_CHARACTERS = 4_000_000
"""Characters of the most frequent words, from which pieces are learned; 20 million words of English
have 219,000 different ones with 1.6 million characters."""
LONGEST_PIECE = 50
"""Characters, as in tensorflow-text's learner; its tokenizer takes 256 bytes at most."""
_RAREST = 2
"""Least count of a pair that becomes a piece."""
_FIRST = 1 << 32
"""A pair is the number `first * _FIRST + second`."""


class Pieces(NamedTuple):
    """The entries of a vocabulary other than special tokens."""

    characters: list[str]
    """Single characters and "##" with a character, by falling count."""
    merged: list[str]
    """Longer pieces in the order of merges, by about falling count."""


def learn_pieces(counts: Mapping[bytes, int], most: int) -> Pieces:
    """Returns `most` pieces; fewer, if no other pair occurs twice.

    It uses the most frequent words of up to `MAX_WORD_CHARACTERS`, `MOST_CHARACTERS` in all. Each
    step adds the most frequent pair or character; a character counts `UNKNOWN_COST` times.
    Characters are at most half of the pieces. Of equal counts, the piece of more frequent
    characters is first, then the first in Unicode order: the order of `counts` has no effect.
    """
    words = list(_commonest(counts))
    ranked = _ranked_characters(words)
    tokens = [character for character, _ in ranked]
    merges = _Merges([(_split(word), count) for word, count in words], tokens)
    characters, found = 0, 0
    most_characters = min(max(1, most // 2), len(ranked))
    while characters + found < most:
        pair, count = merges.commonest()
        if characters < most_characters and UNKNOWN_COST * ranked[characters][1] >= count:
            characters += 1
        elif count < _RAREST:
            break
        else:
            found += merges.merge(pair)
    return Pieces(tokens[:characters], tokens[len(ranked):])


def _commonest(counts: Mapping[bytes, int]) -> Iterator[tuple[str, int]]:
    left = MOST_CHARACTERS
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        text = word.decode()
        left -= len(text)
        if left < 0:
            return
        if len(text) <= MAX_WORD_CHARACTERS:
            yield text, count


def _split(word: str) -> list[str]:
    return [word[0], *(CONTINUATION + character for character in word[1:])]


def _ranked_characters(words: list[tuple[str, int]]) -> list[tuple[str, int]]:
    found: collections.Counter[str] = collections.Counter()
    for word, count in words:
        for character in _split(word):
            found[character] += count
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


class _Merges:
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

    def commonest(self) -> tuple[int, int]:
        """Returns the most frequent pair and its count, 0 without a pair."""
        while self._heap:
            noted, pair = self._heap[0]
            count = self._counts.get(pair, 0)
            is_current = count == -noted
            if is_current and self._length(pair) <= LONGEST_PIECE:
                return pair, count
            heapq.heappop(self._heap)
            if count and not is_current:  # Merges reduced it; an increased count has an entry.
                heapq.heappush(self._heap, (-count, pair))
        return 0, 0

    def merge(self, pair: int) -> bool:
        """Replaces a pair by one piece in all words; returns True if the piece is new."""
        first, second = divmod(pair, _FIRST)
        token = self._tokens[first] + self._tokens[second].removeprefix(CONTINUATION)
        is_new = token not in self._numbers  # "a ##bc" and "ab ##c" give one piece.
        if is_new:
            self._numbers[token] = len(self._tokens)
            self._tokens.append(token)
        merged = self._numbers[token]
        gained: set[int] = set()
        for index in self._words_with.pop(pair):
            gained |= self._merge_in_word(index, first, second, merged)
        del self._counts[pair]
        for other in gained:
            heapq.heappush(self._heap, (-self._counts[other], other))
        return is_new

    def _length(self, pair: int) -> int:
        first, second = divmod(pair, _FIRST)
        return sum(len(self._tokens[number].removeprefix(CONTINUATION))
                   for number in (first, second))

    def _merge_in_word(self, index: int, first: int, second: int, merged: int) -> set[int]:
        """Merges a pair in one word; returns its new pairs."""
        word, count = self._words[index], self._word_counts[index]
        gained = set()
        place = 0
        while place < len(word) - 1:
            if word[place] == first and word[place + 1] == second:
                if place:
                    before = word[place - 1] * _FIRST
                    self._counts[before + first] -= count
                    gained.add(self._add(before + merged, index))
                if place + 2 < len(word):
                    after = word[place + 2]
                    self._counts[second * _FIRST + after] -= count
                    gained.add(self._add(merged * _FIRST + after, index))
                word[place:place + 2] = [merged]
            place += 1
        return gained

    def _add(self, pair: int, index: int) -> int:
        self._counts[pair] += self._word_counts[index]
        self._words_with[pair].add(index)
        return pair
