"""Repeated lines and near-duplicate documents are dropped, in any division."""

import random

import hypothesis
import pytest
from hypothesis import strategies

from data_prep.cleaning import plan
from data_prep.documents import key_of
from electra_tf.core.errors import UserError
from tests.data_prep.cleaning.cleaned_documents import ShuffledRunner, cleaned

LINES = strategies.sampled_from(["a", "b", "c", "long line", "another long line", "unique"])
DOCUMENTS = strategies.lists(strategies.lists(LINES, min_size=1, max_size=6), min_size=1,
                             max_size=8)


def first_ones(documents, shortest=0):
    """Returns the lines that did not occur before, or are short."""
    seen, kept = set(), []
    for lines in documents:
        kept.append([])
        for line in lines:
            if line not in seen or len(line) < shortest:
                kept[-1].append(line)
            seen.add(line)
    return kept


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
@hypothesis.given(documents=DOCUMENTS, unit_bytes=strategies.integers(1, 40),
                  part_lines=strategies.integers(1, 4), seed=strategies.integers(0, 9),
                  shortest=strategies.sampled_from([0, 2]))
def test_units_parts_and_the_order_of_work_do_not_change_what_is_kept(
        tmp_path_factory, documents, unit_bytes, part_lines, seed, shortest):
    kept, tally = cleaned(
        tmp_path_factory.mktemp("build"), documents, unit_bytes=unit_bytes, part_lines=part_lines,
        runner=ShuffledRunner(seed), drop_duplicate_lines=True, min_duplicate_characters=shortest)
    expected = first_ones(documents, shortest)
    assert kept["train"] == expected
    assert tally["duplicate_lines"] == sum(map(len, documents)) - sum(map(len, expected))


def test_training_lines_precede_held_out_ones(clean):
    kept, _ = clean([["same", "held out"], ["same", "trained on"]], drop_duplicate_lines=True,
                    held_out=key_of(b"same\nheld out"))
    assert kept == {"train": [["same", "trained on"]], "eval": [["held out"]]}


def test_a_line_first_seen_in_a_dropped_document_is_kept_where_it_is_next(clean):
    text = text_of(1)
    kept, tally = clean([[text], [text, "OK"], ["OK", "a"], ["OK", "b"]], drop_duplicate_lines=True,
                        drop_near_duplicates=True)
    assert kept["train"] == [[text], [], ["OK", "a"], ["b"]]
    assert (tally["lines_of_dropped_documents"], tally["duplicate_lines"]) == (2, 1)


def test_documents_without_words_are_no_near_duplicates(clean):
    documents = [["..."], ["..."], ["a"], ["- - -"]]
    kept, tally = clean(documents, drop_near_duplicates=True)
    assert (kept["train"], tally) == (documents, {})


def text_of(seed, words=400):
    generator = random.Random(seed)
    return " ".join(f"w{generator.randrange(5000)}" for _ in range(words))


def changed(text, every):
    return " ".join(f"other{index}" if index % every == 0 else word
                    for index, word in enumerate(text.split()))


@pytest.mark.parametrize("unit_bytes", [1, 10**9])
def test_the_first_of_near_duplicates_is_kept_with_all_its_parts(clean, unit_bytes):
    first, other = text_of(1), text_of(2)
    parts = [text_of(seed, 30) for seed in range(3, 9)]
    documents = [[first], [other], [changed(first, 200)], [first], [changed(first, 3)], [other],
                 parts, [*parts[:2], "its end differs"]]
    kept, tally = clean(documents, part_lines=2, unit_bytes=unit_bytes, drop_near_duplicates=True)
    assert kept["train"] == [[first], [other], [], [], [changed(first, 3)], [], parts, []]
    assert (tally["near_duplicate_documents"], tally["lines_of_dropped_documents"]) == (4, 6)


@pytest.mark.parametrize("change", [
    lambda content: content[:-1], lambda content: content[30:], lambda content: b""],
    ids=["cut", "no head", "empty"])
def test_damaged_decisions_are_one_line_that_names_the_file(tmp_path, change):
    path = tmp_path / ".cleaning-decisions"
    plan.save_arrays(path, {"train-00000/lines": [1, 70_000]})
    assert plan.read_arrays(path)["train-00000/lines"].tolist() == [1, 70_000]
    path.write_bytes(change(path.read_bytes()))
    for name in ("train-00000/lines", "train-00001/lines"):
        with pytest.raises(UserError, match=r"\.cleaning-decisions is damaged; remove it"):
            plan.read_arrays(path, name)
