"""A part of the documents is kept from training; of few documents one."""

import pytest

from data_prep import record_builder
from data_prep.held_out import HeldOut, held_out_of
from data_prep.sources import DOCUMENT_END


def text_of(*lengths):
    return [line for length in lengths for line in ("a" * length, DOCUMENT_END)]


@pytest.mark.parametrize(("documents", "fraction", "expected"), [
    (51, 0.01, HeldOut(period=100)), (10, 0.1, HeldOut(period=10)), (300, 0.0, HeldOut()),
    (1, 0.01, HeldOut()), (0, 0.01, HeldOut()), (2, 0.5, HeldOut(period=2))])
def test_enough_documents_follow_the_fraction_and_a_single_one_is_trained_on(
        documents, fraction, expected):
    assert held_out_of(text_of(*[4] * documents), fraction) == expected


@pytest.mark.parametrize(("lengths", "number"), [
    ((9, 2), 1), ((2, 9), 0), ((5, 1, 7), 0), ((3, 3, 3), 0), (range(50, 0, -1), 25)])
def test_of_few_documents_the_one_of_median_length_is_held_out(lengths, number):
    rule = held_out_of(text_of(*lengths), 0.01)
    assert [document for document in range(len(lengths)) if document in rule] == [number]


def test_a_rule_holds_out_what_the_fraction_says():
    rule = HeldOut(period=100)
    assert [document for document in range(300) if document in rule] == [50, 150, 250]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_corpus_of_a_few_documents_has_something_to_evaluate_on(build, tmp_path, workers):
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join(f"{'word ' * (number + 3)}" for number in range(5)) + "\n")
    made = build(text=str(text), held_out_fraction=0.01, num_workers=workers)
    (shard,) = made.shards_of("eval")
    assert shard.tokens == 5 * 4 + 3  # Five words of four letters; [CLS] and two [SEP].
    assert made.fingerprint == build("again", text=str(text), held_out_fraction=0.01).fingerprint
    assert "1 of the 5 documents was held out" in record_builder.held_out_note(made)


def test_what_is_held_out_is_told(build, tmp_path):
    assert record_builder.held_out_note(build("usual")) == ""
    assert "(--held_out_fraction)" in record_builder.held_out_note(
        build("none", held_out_fraction=0.0))
    (tmp_path / "one.txt").write_text("a single document\n")
    note = record_builder.held_out_note(build("single", text=str(tmp_path / "one.txt")))
    assert "the text is a single document. Put blank lines between documents" in note
