"""Both packings keep every token once and in order, and make the segments they promise."""

import itertools
import math
import random

import numpy as np
import pytest

from data_prep.packing import PACKINGS, Layout, TokenizedLines

CLS, SEP = 1, 2
CONTINUATIONS = frozenset(range(1000, 2000))
CONTINUES = np.isin(np.arange(1_000_000), list(CONTINUATIONS))


def layout(max_seq_length=32, **rates):
    return Layout(max_seq_length=max_seq_length, cls_id=CLS, sep_id=SEP, continues=CONTINUES,
                  dtype=np.dtype(np.int32), **rates)


def pack(name, documents, seed=0, **options):
    """Returns the examples of documents, which are lists of lines of ids."""
    lines = [line for document in documents for line in (*document, None)]  # None: its end.
    text = TokenizedLines(
        np.array([token for line in lines for token in line or ()], np.int32),
        np.array(list(itertools.accumulate(len(line or ()) for line in lines)), np.int64),
        np.array([line is None for line in lines], bool))
    examples = PACKINGS[name](text, layout(**options), random.Random(seed))
    return [(np.frombuffer(ids, np.int32).tolist(), first) for ids, first in examples]


def numbered(lengths, continuation_rate=0.0, seed=0):
    """Returns documents of lines of the given lengths; word starts are numbered from 2000.

    As in text, a line begins with a word, unless `continuation_rate` is 1.
    """
    generator = random.Random(seed)
    count = iter(range(2000, 10**9))

    def token(position):
        number = next(count)
        continues = generator.random() < continuation_rate and (position or continuation_rate == 1)
        return generator.randint(1000, 1999) if continues else number

    return [[[token(position) for position in range(length)] for length in document]
            for document in lengths]


def random_lengths(seed, documents=300, longest=90):
    generator = random.Random(seed)
    return [[generator.choice([0, 1, 2, 3, generator.randint(1, longest), 5 * longest])
             for _ in range(generator.randint(1, 6))] for _ in range(documents)]


def content(ids):
    return [token for token in ids if token not in (CLS, SEP)]


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("max_seq_length", [5, 32])
def test_every_token_is_in_one_well_formed_example(name, max_seq_length):
    documents = numbered(random_lengths(max_seq_length), 0.3)
    owner = {token: number for number, document in enumerate(documents)
             for line in document for token in line if token not in CONTINUATIONS}
    examples = pack(name, documents, seed=7, max_seq_length=max_seq_length, short_example_rate=0.05)
    assert [token for ids, _ in examples for token in content(ids)] == [
        token for document in documents for line in document for token in line]
    for ids, first in examples:
        assert len(ids) <= max_seq_length
        assert ids[0] == CLS and ids[-1] == SEP and ids.count(CLS) == 1
        assert ids[first - 1] == SEP
        assert content(ids[:first]) and (first == len(ids) or content(ids[first:]))
        if name == "reference":
            assert len({owner[token] for token in content(ids) if token in owner}) <= 1
    if name == "full":
        assert {len(ids) for ids, _ in examples[:-1]} == {max_seq_length}


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0])
def test_single_segments_are_as_frequent_as_their_rate(name, rate):
    # One long document, so that nothing but the draw makes a single segment (save at its end).
    examples = pack(name, numbered([[40] * 4000]), seed=5, single_segment_rate=rate,
                    short_example_rate=0)[:-1]
    singles = sum(first == len(ids) for ids, first in examples)
    deviation = math.sqrt(rate * (1 - rate) * len(examples))
    assert len(examples) > 4000
    assert abs(singles - rate * len(examples)) <= 4 * deviation


HAND_MADE = [[[10, 1000, 11, 12], [13, 14]], [[15]], [[16, 17, 1001, 18, 19, 1002, 1003, 20]]]
"""Documents; 1000 to 1003 continue words."""


def test_full_packing_of_a_text_by_hand():
    # The stream: 10 1000 11 12 | 13 14 SEP 15 SEP 16 17 1001 18 19 1002 1003 20, 8 positions.
    assert pack("full", HAND_MADE, max_seq_length=8, single_segment_rate=0) == [
        # 10 1000 11 12 | 13 without a [SEP]: the line's end at 4 is beyond the middle half, so the
        # word start at 2 it is. Six tokens fit, the next three of which ...
        ([CLS, 10, 1000, SEP, 11, 12, 13, SEP], 4),
        # ... 14 SEP 15 SEP 16 17 meet at the later [SEP], exactly in the middle.
        ([CLS, 14, SEP, 15, SEP, 16, 17, SEP], 5),
        # 1001 18 19 1002 1003: the word start nearest to place 2, where 19 stands.
        ([CLS, 1001, 18, SEP, 19, 1002, 1003, SEP], 4),
        ([CLS, 20, SEP], 3),
    ]


def test_reference_packing_of_a_text_by_hand():
    made = pack("reference", HAND_MADE, max_seq_length=8, single_segment_rate=0,
                short_example_rate=0)
    assert made == [
        # The first segment aims at 2 of 5 tokens, where 11 begins a word. The rest of the line is
        # shorter than what is left, and one more token of the next line fits.
        ([CLS, 10, 1000, SEP, 11, 12, 13, SEP], 4),
        ([CLS, 14, SEP], 3),  # The document's last.
        ([CLS, 15, SEP], 3),
        # 1001 can't begin a segment, so the first has one token; nor can 1002 after 19.
        ([CLS, 16, SEP, 17, 1001, 18, SEP], 3),
        # Of 19 1002 1003 20 the first segment takes 2 although 1003 continues a word: neither of
        # its places is a word's start.
        ([CLS, 19, 1002, SEP, 1003, 20, SEP], 4),
    ]
