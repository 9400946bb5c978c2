"""Samples show the generator's words and the discriminator's probabilities."""

import re

import numpy as np
import pytest

from electra_tf.reporting.samples import LEGEND, Corruption, select_readable, summary, terminal_page

SAMPLE = Corruption(
    original=["[CLS]", "the", "chef", "##s", "cook", "soup", "again", "[SEP]"],
    corrupted=["[CLS]", "the", "dog", "##ly", "cook", "meal", "again", "[SEP]"],
    selected=[False, True, True, True, False, True, False, False],
    replaced_probability=[0.0, 0.3, 0.97, 0.88, 0.5, 0.12, 0.64, 0.0],
)


def outcomes(sample):
    return [outcome for *_, outcome in sample.tokens()]


def test_every_token_has_one_outcome_and_pieces_join_into_words():
    assert outcomes(SAMPLE) == ["untouched", "restored", "detected", "detected", "untouched",
                                "missed", "false alarm", "untouched"]
    page = terminal_page([SAMPLE, SAMPLE])
    counts = ("4 of 8 tokens filled in: 1 as they were, 3 replaced (2 detected, 1 missed); "
              "1 false alarm")
    marked = "  {the} [chefs→dogly ✓97%] cook [soup→meal ✗12%] [again !64%]"
    assert page.count(LEGEND) == 1 and page.count(f"{counts}\n{marked}\n") == 2
    # (97 + 88 + 12) / 3 and (0 + 30 + 50 + 64 + 0) / 5.
    assert page.endswith("65.7% for replaced tokens, 28.8% for original ones.")


@pytest.mark.parametrize("color", [False, True])
def test_lines_have_100_columns_and_colors_take_none(color):
    count = 40
    long = Corruption(
        original=["word"] * count, corrupted=["other", "word"] * (count // 2),
        selected=[True] * count, replaced_probability=[0.9] * count)
    view = terminal_page([long], color=color).split("\n\n")[1]
    assert ("\x1b[32m[word→other ✓90%]\x1b[0m" in view) == color
    lines = [re.sub(r"\x1b\[\d+m", "", line) for line in view.splitlines()[1:]]
    assert len(lines) > 5 and max(map(len, lines)) <= 100
    assert " ".join(lines).count("[word→other ✓90%]") == count // 2


def test_guesses_without_a_discriminator_have_no_verdicts():
    guesses = Corruption(original=SAMPLE.original, corrupted=SAMPLE.corrupted,
                         selected=SAMPLE.selected)
    page = terminal_page([guesses])
    assert "{the} [chefs→dogly] cook [soup→meal] again" in page
    assert summary(guesses) == "4 of 8 tokens filled in: 1 as they were, 3 otherwise"
    assert "discriminator" not in page and "%" not in page


def test_rows_of_an_evaluation_become_sentences():
    per_example = {"ids": np.array([[1, 2, 3, 0]]),
                   "padding_mask": np.array([[True, True, True, False]]),
                   "positions": np.array([[2, 1, 0]]), "predicted": np.array([[True, True, False]])}
    [sample] = Corruption.of_arrays(per_example, np.array([[1, 4, 3, 0]]), "pabcd")
    assert (sample.original, sample.corrupted) == (["a", "b", "c"], ["a", "d", "c"])
    assert outcomes(sample) == ["untouched", "replaced", "restored"]


def test_the_most_readable_text_of_each_part_is_selected():
    texts = [["[CLS]", word, word, "3", "[SEP]"] for word in "()[]{}"]
    texts[1], texts[2], texts[4] = ["a", "cat"], ["a", "b", "c"], ["a", "##cat"]
    assert select_readable(texts, 2) == [1, 4] and select_readable(texts, 1) == [1]
    assert select_readable(texts[:2], 4) == [0, 1] and select_readable([], 4) == []
