"""Both packings keep every token once and in order, and make the segments they promise."""

import collections
import itertools
import math
import random

import numpy as np
import pytest

from data_prep.packing import (
    PACKINGS,
    FullPacking,
    Layout,
    ReferencePacking,
    TokenizedLines,
    packing_named,
)
from electra_tf.platform.errors import UserError
from tests.data_prep import plain_packing

CLS, SEP = 1, 2
CONTINUATIONS = frozenset(range(1000, 2000))
CONTINUES = np.isin(np.arange(1_000_000), list(CONTINUATIONS))


def layout(max_seq_length=32, **rates):
    return Layout(max_seq_length=max_seq_length, cls_id=CLS, sep_id=SEP, continues=CONTINUES,
                  dtype=np.dtype(np.int32), **rates)


def tokenized(lines):
    """Returns lists of ids as a batch; None stands for a document's end."""
    return TokenizedLines(
        np.array([token for line in lines for token in line or ()], np.int32),
        np.array(list(itertools.accumulate(len(line or ()) for line in lines)), np.int64),
        np.array([line is None for line in lines], bool))


def pack(packing, documents, lines_at_once=50):
    """Returns the examples of documents, which are lists of lines of ids."""
    lines = [line for document in documents for line in (*document, None)]
    found = []
    for start in range(0, len(lines), lines_at_once):
        found += packing.add(tokenized(lines[start:start + lines_at_once]))
    found += packing.finish()
    return [(np.frombuffer(ids, np.int32).tolist(), first) for ids, first in found]


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
@pytest.mark.parametrize("max_seq_length", [5, 6, 7, 8, 17, 32, 128])
@pytest.mark.parametrize("continuation_rate", [0.0, 0.3, 1.0])
def test_every_token_comes_out_once_and_in_order(name, max_seq_length, continuation_rate):
    documents = numbered(random_lengths(max_seq_length), continuation_rate)
    examples = pack(packing_named(name, layout(max_seq_length, short_example_rate=0.05),
                                  random.Random(7)), documents)
    tokens = [token for document in documents for line in document for token in line]
    assert [token for ids, _ in examples for token in content(ids)] == tokens


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("max_seq_length", [5, 8, 32, 128])
def test_every_example_is_well_formed(name, max_seq_length):
    examples = pack(packing_named(name, layout(max_seq_length), random.Random(7)),
                    numbered(random_lengths(3), 0.3))
    for ids, first in examples:
        assert len(ids) <= max_seq_length
        assert ids[0] == CLS and ids[-1] == SEP and ids.count(CLS) == 1
        assert ids[first - 1] == SEP
        assert content(ids[:first]) and (first == len(ids) or content(ids[first:]))


def test_an_unknown_packing_is_refused():
    with pytest.raises(UserError, match="--packing must be one of full, reference.*'tight'"):
        packing_named("tight", layout(), random.Random(0))


@pytest.mark.parametrize("max_seq_length", [5, 8, 32, 128])
def test_full_packing_pads_the_last_example_only(max_seq_length):
    examples = pack(FullPacking(layout(max_seq_length), random.Random(1)),
                    numbered(random_lengths(4), 0.3))
    assert {len(ids) for ids, _ in examples[:-1]} == {max_seq_length}


def test_full_packing_parts_documents_by_one_separator_or_the_end_of_an_example():
    documents = numbered([[9], [4], [7, 6], [30], [2]] * 100)
    examples = pack(FullPacking(layout(), random.Random(1)), documents)
    ends = {document[-1][-1] for document in documents}
    for ids, _ in examples:
        for left, right in zip(ids, ids[1:], strict=False):
            assert left not in ends or right == SEP
            assert (left, right) not in ((SEP, SEP), (CLS, SEP))


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0])
def test_single_segments_are_as_frequent_as_asked(name, rate):
    # One long document, so that nothing but the draw makes a single segment (save at its end).
    examples = pack(packing_named(name, layout(single_segment_rate=rate, short_example_rate=0),
                                  random.Random(5)), numbered([[40] * 4000]))[:-1]
    singles = sum(first == len(ids) for ids, first in examples)
    deviation = math.sqrt(rate * (1 - rate) * len(examples))
    assert len(examples) > 4000
    assert abs(singles - rate * len(examples)) <= 4 * deviation


def test_full_packing_meets_at_the_document_boundary_nearest_to_the_middle():
    # 32 positions: [CLS], 30 of the stream, [SEP]. The stream's separators are at 3, 13, 24.
    documents = numbered([[3], [9], [10], [50]])
    ids, first = pack(FullPacking(layout(single_segment_rate=0), random.Random(0)), documents)[0]
    assert ids[:first] == [
        CLS, *documents[0][0], SEP, *documents[1][0], SEP]


def test_full_packing_meets_at_the_line_end_nearest_to_the_middle():
    documents = numbered([[5, 7, 5, 4, 30]])  # Ends after 5, 12, 17, 21 of 29; the middle is 14.
    ids, first = pack(FullPacking(layout(single_segment_rate=0), random.Random(0)), documents)[0]
    assert content(ids[:first]) == sum(documents[0][:2], [])
    assert len(ids) == 32


def test_full_packing_splits_a_long_paragraph_at_the_word_start_nearest_to_the_middle():
    line = [3000, *[1000] * 10, 3001, *[1000] * 7, 3002, *[1000] * 30]  # Starts at 0, 11, 19.
    ids, first = pack(FullPacking(layout(single_segment_rate=0), random.Random(0)), [[line]])[0]
    assert content(ids[:first]) == line[:11]


def test_full_packing_never_begins_a_second_segment_within_a_word_if_there_is_a_word_start():
    examples = pack(FullPacking(layout(), random.Random(1)), numbered([[200] * 500], 0.4))
    begins = [ids[first] for ids, first in examples if first < len(ids)]
    assert len(begins) > 2500
    assert not CONTINUATIONS & set(begins)


def test_reference_packing_does_not_mix_documents():
    documents = numbered(random_lengths(6))
    owner = {token: number for number, document in enumerate(documents)
             for line in document for token in line}
    for ids, _ in pack(ReferencePacking(layout(), random.Random(2)), documents):
        assert len({owner[token] for token in content(ids)}) == 1


def test_reference_packing_aims_at_half_with_the_first_segment():
    # Lines of 5: the first segment aims at 14 of 29, so it takes 2 lines, and with 1/2 a third.
    documents = numbered([[5] * 20_000])
    examples = pack(ReferencePacking(layout(single_segment_rate=0, short_example_rate=0),
                                     random.Random(2)), documents)
    # An example may begin with the rest of a line, so a first segment ends anywhere in 9..18.
    sizes = collections.Counter(first - 2 for _, first in examples[:-1])
    assert set(sizes) <= set(range(9, 19))
    mean = sum(size * count for size, count in sizes.items()) / len(examples)
    assert 11.5 < mean < 16.5


def test_reference_packing_makes_short_examples_as_often_as_asked():
    rate = 0.3
    examples = pack(ReferencePacking(layout(single_segment_rate=0, short_example_rate=rate),
                                     random.Random(2)), numbered([[1] * 100_000]))
    # A length drawn from 5..32 is below 32 in 27 of 28 cases.
    short = sum(len(ids) < 32 for ids, _ in examples[1:-1])
    expected = rate * 27 / 28 * len(examples)
    assert abs(short - expected) <= 4 * math.sqrt(expected) + 1
    assert min(len(ids) for ids, _ in examples[1:-1]) == 5


def test_reference_packing_without_long_lines_has_two_segments_in_nine_of_ten_examples():
    examples = pack(ReferencePacking(layout(128, short_example_rate=0), random.Random(2)),
                    numbered([[20] * 10_000]))
    two = sum(first < len(ids) for ids, first in examples)
    assert abs(two - 0.9 * len(examples)) <= 4 * math.sqrt(0.09 * len(examples)) + 1


def test_draws_depend_on_the_generator_alone():
    documents = numbered(random_lengths(8), 0.3)
    for packing in PACKINGS.values():
        one, same, other = (pack(packing(layout(), random.Random(seed)), documents)
                            for seed in ("1/train-00000", "1/train-00000", "1/train-00001"))
        assert one == same != other


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("max_seq_length", [5, 6, 7, 8, 17, 32, 128])
@pytest.mark.parametrize("lines_at_once", [1, 7, 10**6])
def test_examples_are_those_of_packing_token_by_token(name, max_seq_length, lines_at_once):
    """Whatever comes at once: empty lines and documents, long lines, text without word starts."""
    documents = [document for rate in (0.0, 0.3, 1.0) for document in [
        [], *numbered(random_lengths(max_seq_length, documents=25), rate, seed=9), [], [[]]]]
    rates = {"single_segment_rate": 0.2, "short_example_rate": 0.2}
    packing = packing_named(name, layout(max_seq_length, **rates), random.Random(7))
    plain = plain_packing.PACKINGS[name](
        plain_packing.Layout(max_seq_length, CLS, SEP, CONTINUATIONS, **rates), random.Random(7))
    expected = [tuple(example) for example in plain_packing.pack(plain, documents)]
    assert pack(packing, documents, lines_at_once) == expected


HAND_MADE = [[[10, 1000, 11, 12], [13, 14]], [[15]], [[16, 17, 1001, 18, 19, 1002, 1003, 20]]]
"""Documents; 1000 to 1003 continue words."""


def test_full_packing_of_a_text_by_hand():
    # The stream: 10 1000 11 12 | 13 14 SEP 15 SEP 16 17 1001 18 19 1002 1003 20, 8 positions.
    assert pack(FullPacking(layout(8, single_segment_rate=0), random.Random(0)), HAND_MADE) == [
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
    made = pack(ReferencePacking(layout(8, single_segment_rate=0, short_example_rate=0),
                                 random.Random(0)), HAND_MADE)
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
