"""Samples show the generator's words and the discriminator's probabilities."""


import numpy as np

from electra_tf.reporting.samples import LEGEND, Corruption, summary, terminal_page

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
    [sample] = Corruption.from_arrays(per_example, np.array([[1, 4, 3, 0]]), "pabcd")
    assert (sample.original, sample.corrupted) == (["a", "b", "c"], ["a", "d", "c"])
    assert outcomes(sample) == ["untouched", "replaced", "restored"]
