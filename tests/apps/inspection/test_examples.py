"""Examples that are shown have the masks that training draws, and words in one piece."""

import dataclasses

import numpy as np
import pytest

from electra_tf.apps.inspection import examples, report, survey
from electra_tf.config.model import MaskingConfig
from electra_tf.data import manifest
from electra_tf.text.vocabulary import MASK, SPECIAL_TOKENS


def masked(found, count=20, seed=1, draws=3, **masking):
    return examples.masked_examples(found.records, count, MaskingConfig(**masking), seed=seed,
                                    draws=draws)


def test_an_example_is_the_one_at_its_place(found):
    made = masked(found)
    assert len({example.place for example in made}) == 20
    for example in made:
        rows = found.records.example(example.place)
        assert [(piece.token, piece.segment) for piece in example.pieces] == [
            (found.records.vocabulary.tokens[index], segment)
            for index, segment in zip(rows.ids[rows.valid], rows.segment_ids[rows.valid],
                                      strict=True)]


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_so_many_tokens_are_masked_and_never_special_ones(found, rate):
    config = MaskingConfig(rate=rate)
    for example in masked(found, rate=rate):
        read = np.array([piece.read for piece in example.pieces])
        selected = read != None  # noqa: E711
        wanted = config.predictions_by_length(32)[len(example.pieces)]
        assert list(selected.sum(axis=0)) == [wanted] * 3
        for piece, instead in zip(example.pieces, read, strict=True):
            assert set(instead) <= {None, MASK, piece.token}
            assert piece.token not in SPECIAL_TOKENS or set(instead) == {None}


def test_every_draw_is_another_and_a_seed_repeats_them(found):
    first = masked(found)
    assert first == masked(found)
    for example in first:
        draws = zip(*(piece.read for piece in example.pieces), strict=True)
        assert len(set(draws)) == 3
    assert [each.place for each in first] != [each.place for each in masked(found, seed=2)]


def test_held_out_examples_are_shown_where_there_are_no_others(found):
    made = found.records.manifest
    held_out = dataclasses.replace(found, records=dataclasses.replace(
        found.records, manifest=dataclasses.replace(made, shards=made.shards_of("eval"))))
    assert {example.place.shard.split for example in masked(held_out, count=5)} == {"eval"}
    assert masked(found, count=0) == []
    assert len(masked(found, count=500)) == 86


def example_of(*tokens, name="a", border=4):
    """One example of two segments, whose third token is hidden in the only draw."""
    shard = manifest.Shard(name=name, split="train", examples=1, tokens=8, bytes=9,
                           sha256="0" * 64)
    return examples.MaskedExample(place=survey.Place(shard, 0), pieces=tuple(
        examples.MaskedPiece(token=token, segment=int(index >= border),
                       read=(MASK if index == 2 else None,))
        for index, token in enumerate(tokens)))


def test_pieces_of_a_word_stand_together_and_marks_say_what_is_read(found):
    example = example_of("[CLS]", "un", "##able", "to", "[SEP]", "##s", "go", "##", "[SEP]",
                         border=5)
    pieces = list(example.pieces)
    pieces[3] = dataclasses.replace(pieces[3], read=("to",))
    pieces[6] = dataclasses.replace(pieces[6], read=("##word",))
    text = report.text(found, [dataclasses.replace(example, pieces=tuple(pieces))])
    assert ("1. training, a, example 0: 9 tokens (5 + 4), 3 selected\n"
            "  A  [CLS] un«able» {to} [SEP]\n"
            "  B  s (go→word) ## [SEP]\n") in text
