"""Tags of every scheme mark the spans that seqeval finds in it, or those written by hand."""

import itertools

import pytest
from seqeval import scheme as schemes

from electra_tf.tasks.tag_schemes import as_iob2, as_known, scheme_name, span_parts


def spans(tags, scheme=schemes.IOB2):
    """Returns type, begin and end of the spans of valid tags, by seqeval in strict mode."""
    (entities,) = schemes.Entities([list(tags)], scheme=scheme).entities
    return [(entity.tag, entity.start, entity.end) for entity in entities]


def read(*sentences):
    parts, form, _ = span_parts({tag for tags in sentences for tag in tags})
    return scheme_name(parts, form), [list(as_iob2(tags, parts)) for tags in sentences]


@pytest.mark.parametrize(("scheme", "letters", "max_length"), [
    (schemes.IOB1, "BI", 5), (schemes.IOB2, "BI", 5), (schemes.IOE2, "IE", 5),
    (schemes.IOBES, "BIES", 4), (schemes.BILOU, "BILU", 4)])
def test_valid_tags_keep_the_spans_of_seqevals_strict_mode(scheme, letters, max_length):
    """And in the scheme of a model they stay as they are."""
    tags = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    known = set(tags) - ({"B-X"} if scheme is schemes.IOB1 else set())
    compared, (parts, _, _) = 0, span_parts(tags)
    for sentence in itertools.product(tags, repeat=max_length):
        expected = spans(sentence, scheme)
        covered = {index for _, begin, end in expected for index in range(begin, end)}
        if all((tag == "O") is (index not in covered) for index, tag in enumerate(sentence)):
            written = as_iob2(sentence, parts)  # All words are valid.
            assert spans(read(sentence, tags)[1][0]) == expected, sentence
            assert as_known(written, known) == sentence
            compared += 1
    assert compared > 150


@pytest.mark.parametrize(("known", "written"), [
    ("B-A I-A O", "B-A B-A I-A I-A O B-C"), ("I-A I-C O", "I-A B-A I-A I-A O I-C"),
    ("A-B A-I O", "A-B A-B A-I A-I O C-B"), ("B_A I_A o", "B_A B_A I_A I_A o B-C"),
    ("B-A I-A L-A U-A U-C O", "U-A B-A I-A L-A O U-C"), ("a-s A-S A-B A-M A-E O",
     "A-S A-B A-M A-E O C-S"), ("A C O", "A A A A O C"), ("N V", "B-A B-A I-A I-A O B-C")])
def test_tags_are_written_as_a_model_writes_them(known, written):
    assert as_known("B-A B-A I-A I-A O B-C".split(), known.split()) == tuple(written.split())


@pytest.mark.parametrize(("name", "tags", "written"), [
    ("IOB", "B-A I-A O B-A B-A", "B-A I-A O B-A B-A"), ("IOB", "I-A I-A B-A O", "B-A I-A B-A O"),
    ("IOB", "I-A O I-B I-C", "B-A O B-B B-C"), ("IOE", "I-A E-A I-A O I-A", "B-A I-A B-A O B-A"),
    ("IOE", "I-A E-A E-A O E-B", "B-A I-A B-A O B-B"), ("IOB", "B_A I_A O", "B-A I-A O"),
    ("IOB", "B-A O I-A", "B-A O B-A"), ("IOBES", "S-A O S-A", "B-A O B-A"),
    ("IOB, the letter last", "PER-B PER-I O", "B-PER I-PER O"),
    ("BILOU, the letter last", "A_U A_B A_L O", "B-A B-A I-A O"),
    ("IOB", "b-a i-a o", "B-a I-a O"), ("BMES", "B-A M-A E-A S-A O", "B-A I-A I-A B-A O"),
    ("BMEWO", "W-A B-A E-A O", "B-A B-A I-A O"),
    ("IOB", "B-geo-loc I-geo-loc O", "B-geo-loc I-geo-loc O"),
    ("IOB, without types", "B I O B", "B I O B"), ("IOBES, without types", "B E S", "B I B"),
    ("a mixture of schemes with B-, E-, U-", "B-A E-A U-A O", "B-A I-A B-A O")])
def test_schemes_are_named_and_rewritten(name, tags, written):
    assert read(tags.split()) == (name, [written.split()])


@pytest.mark.parametrize("tags", [
    "NOUN VERB CCONJ SCONJ", "ART NN $( PTKVZ", "N O ^ S B", "person-actor O", "PER O LOC",
    "Nb S- I- Df", "n-s---mn- l-s---mn- u-------- v3spia---", "S-Shirt M-Shirt L-Shirt", "O O"])
def test_tags_without_spans_stay_as_they_are(tags):
    parts, _, odd = span_parts(set(tags.split()))
    assert (parts, odd, as_iob2(tags.split(), parts)) == ({}, [], tuple(tags.split()))


@pytest.mark.parametrize("odd", ["0", "OO", "B", "PER", "B-"])
def test_a_tag_unlike_the_others_is_named(odd):
    parts, _, others = span_parts({"B-A", "I-A", "O", odd})
    assert (parts["B-A"], others) == (("B", "A"), [odd])
