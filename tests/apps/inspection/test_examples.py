"""Examples that are shown have the masks that training draws."""

import dataclasses

import numpy as np
import pytest

from electra_tf.apps.inspection import examples
from electra_tf.config.masking import MaskingConfig
from electra_tf.text.vocabulary import MASK, SPECIAL_TOKENS

WORDS = {f"word{index}" for index in range(35)}


def shown(found, count=20, seed=1, draws=3, **masking):
    return examples.masked_examples(found, count, MaskingConfig(**masking), seed=seed, draws=draws)


def test_an_example_is_the_one_at_its_place(found):
    made = shown(found)
    assert len({example.place for example in made}) == 20
    for example in made:
        rows = found.records.example(example.place)
        length = int(rows.valid.sum())
        assert example.tokens == tuple(
            found.records.vocabulary.tokens[index] for index in rows.ids[0, :length])
        assert list(example.segments) == list(rows.segment_ids[0, :length])


@pytest.mark.parametrize("rate", [0.15, 0.5])
def test_so_many_tokens_are_masked_and_never_special_ones(found, rate):
    config = MaskingConfig(rate=rate)
    for example in shown(found, rate=rate):
        wanted = config.predictions_by_length(32)[len(example.tokens)]
        assert list(example.selected.sum(axis=1)) == [wanted] * 3
        for selected, read in zip(example.selected, example.read, strict=True):
            for token, instead, chosen in zip(example.tokens, read, selected, strict=True):
                assert instead in ((token, MASK) if chosen else (token,))
                assert not (chosen and token in SPECIAL_TOKENS)


def test_every_draw_is_another_and_a_seed_repeats_them(found):
    first, again, other = shown(found), shown(found), shown(found, seed=2)
    for one, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.selected, same.selected)
    assert all(len({draw.tobytes() for draw in example.selected}) == 3 for example in first)
    assert [example.place for example in first] != [example.place for example in other]


def test_random_tokens_are_a_setting(found):
    made = shown(found, rate=0.5, mask_token_rate=0.0, random_token_rate=1.0)
    assert len({instead for example in made for instead in example.read[0]} & WORDS) > 20
    changed = sum(a != b for example in made
                  for a, b in zip(example.tokens, example.read[0], strict=True))
    assert changed > 0.8 * sum(example.selected[0].sum() for example in made)


def test_held_out_examples_are_shown_where_there_are_no_others(found):
    none = dataclasses.replace(found.splits["train"], examples=0)
    held_out = dataclasses.replace(found, splits={**found.splits, "train": none})
    assert {split for split, _ in examples.choose(held_out, 5, seed=1)} == {"eval"}
    assert shown(found, count=0) == []
    assert len(shown(found, count=500)) == 86
