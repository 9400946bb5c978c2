"""Repeated lines go; which ones follows from the text alone."""

import hypothesis
from hypothesis import strategies

from tests.data_prep.cleaning.conftest import ShuffledRunner

LINES = strategies.sampled_from(["a", "b", "c", "long line", "another long line", "unique"])
DOCUMENTS = strategies.lists(strategies.lists(LINES, min_size=1, max_size=6), min_size=1,
                             max_size=8)


def first_ones(documents, shortest=0):
    """The plain way: a set of what was seen."""
    seen, found = set(), []
    for lines in documents:
        found.append([])
        for line in lines:
            if line not in seen or len(line) < shortest:
                found[-1].append(line)
            seen.add(line)
    return found


def test_the_first_of_equal_lines_stays_across_documents(clean):
    found, tally = clean([["a", "b", "a"], ["c", "b"], ["d"]], drop_duplicate_lines=True)
    assert found["train"] == [["a", "b"], ["c"], ["d"]]
    assert tally == {"duplicate_lines": 2, "dropped_text_bytes": 2}


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
@hypothesis.given(documents=DOCUMENTS, unit_bytes=strategies.integers(1, 40),
                  part_lines=strategies.integers(1, 4), seed=strategies.integers(0, 9),
                  shortest=strategies.sampled_from([0, 2]))
def test_neither_units_nor_parts_nor_the_order_of_work_change_what_stays(
        tmp_path_factory, documents, unit_bytes, part_lines, seed, shortest):
    clean = clean_in(tmp_path_factory.mktemp("build"))
    found, tally = clean(documents, unit_bytes=unit_bytes, part_lines=part_lines, seed=seed,
                         drop_duplicate_lines=True, min_duplicate_characters=shortest)
    expected = first_ones(documents, shortest)
    assert found["train"] == expected
    assert tally["duplicate_lines"] == sum(map(len, documents)) - sum(map(len, expected))


def test_what_is_trained_on_comes_before_what_is_held_out(clean):
    from data_prep.documents import key_of

    found, _ = clean([["same", "held out"], ["same", "trained on"]], drop_duplicate_lines=True,
                     held_out=[key_of(b"same\nheld out")])
    assert found == {"train": [["same", "trained on"]], "eval": [["held out"]]}


def test_a_line_that_stands_first_in_a_dropped_document_stays_where_it_stands_next(clean):
    german = ("Der Ausschuss wird am Donnerstag wieder zusammenkommen, um über den Haushalt des "
              "nächsten Jahres zu sprechen, und alle Einwohner der Stadt sind eingeladen.")
    found, tally = clean([[german, "OK"], ["OK"], ["OK"]], drop_duplicate_lines=True,
                         languages=("en",))
    assert found["train"] == [[], ["OK"], []]
    assert (tally["lines_of_dropped_documents"], tally["duplicate_lines"]) == (2, 1)


def test_an_interrupted_build_does_not_survey_again(clean, tmp_path):
    runner = ShuffledRunner()
    for _ in range(2):
        found, _ = clean([["a"], ["a"]], unit_bytes=1, drop_duplicate_lines=True, runner=runner,
                         directory=tmp_path)
        assert found["train"] == [["a"], []]
    assert runner.items == 2


def clean_in(directory):
    """The fixture `clean` for a directory of its own, as hypothesis wants it."""
    from tests.data_prep.cleaning import conftest

    return conftest.clean.__wrapped__(directory)
