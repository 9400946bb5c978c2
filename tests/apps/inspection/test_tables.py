"""Tables and remarks, and their text: true numbers, in 100 columns."""

import dataclasses

import numpy as np
import pytest

from electra_tf.apps.inspection import examples, reading, survey, tables, terminal
from electra_tf.config.masking import MaskingConfig
from electra_tf.data import manifest
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tiny_records

EVERYTHING = 1 << 60


def with_counts(found, **changes):
    """The same examples, of a build that counted otherwise."""
    made = found.records.manifest
    made = dataclasses.replace(made, counts=dataclasses.replace(made.counts, **changes))
    return dataclasses.replace(found, records=dataclasses.replace(found.records, manifest=made))


def rows_of(found, title):
    (table,) = [table for table in tables.tables(found) if table.title.startswith(title)]
    return {row[0].strip(): row[1:] for row in table.rows}


def test_records_are_described(found):
    rows = rows_of(found, "Records")
    assert rows["training examples"] == ("86 in 3 shards",)
    assert rows["held-out examples"] == ("10 in 1 shard",)
    assert rows["looked at"] == ("all examples",)
    assert "left out by cleaning" not in rows and "skipped as damaged" not in rows
    other = rows_of(with_counts(found, dropped_text_bytes=2_000_000, skipped_documents=1),
                    "Records")
    assert other["left out by cleaning"] == ("2.0 MB of text",)
    assert other["skipped as damaged"] == ("1 document",)


def test_a_part_of_the_records_is_called_a_part(data_dir):
    found = survey.survey(reading.open_records(data_dir), 20)
    assert rows_of(found, "Records")["looked at"] == (
        "20 of 86 training and 10 of 10 held out: the first ones of every shard",)


def test_lengths_add_up(found):
    rows = rows_of(found, "Lengths")
    assert list(rows) == ["1 to 4", "5 to 8", "9 to 12", "13 to 16", "17 to 20", "21 to 24",
                          "25 to 28", "29 to 31", "32"]
    assert sum(int(row[0]) for row in rows.values()) == 86
    assert sum(int(row[2]) for row in rows.values()) == 10
    assert int(rows["32"][0]) == found.splits["train"].lengths[32] > 50


def test_unknown_words_are_those_that_the_build_counted(found):
    counted = with_counts(found, unknown_words=7, unknown_by_script={"Latin": 4, "Thai": 3})
    rows = rows_of(counted, "Words")
    words = sum(int(each.pieces[5:].sum()) for each in found.splits.values())
    assert rows["Latin"] == (f"{words:,}", "100 %", "1.00", "4", tables.percent(4, 4 + words))
    assert rows["Thai"] == ("0", "0 %", "-", "3", "100 %")
    assert rows["all"][3] == "7"


def test_a_rate_of_a_part_is_that_of_the_whole(data_dir):
    part = survey.survey(reading.open_records(data_dir), 20)
    made = part.records.manifest
    words = made.counts.content_tokens
    rows = rows_of(with_counts(part, unknown_words=words // 3,
                               content_tokens=words + words // 3,
                               unknown_by_script={"Latin": words // 3}), "Words")
    assert rows["Latin"][4] == "25.0 %"


def test_records_that_do_not_say_what_was_unknown_are_told_of(found):
    (words,) = [table for table in tables.tables(found) if table.title.startswith("Words")]
    assert "don't say what stood there" in words.notes[1]
    counted = with_counts(found, unknown_by_script={})
    (words,) = [table for table in tables.tables(counted) if table.title.startswith("Words")]
    assert "counted when the records were built" in words.notes[1]


def test_usual_records_bring_no_remark(found):
    assert tables.remarks(with_counts(found, padding_positions=0)) == [
        line for line in tables.remarks(found) if "padding" not in line and "reads" not in line]


@pytest.mark.parametrize(("changes", "words"), [
    ({"unknown_words": 6, "tokenizer_words": 100}, "6.0% of the words became [UNK]"),
    ({"padding_positions": 2000}, "--packing=full")])
def test_what_is_unusual_is_said_with_the_fix(found, changes, words):
    before = tables.remarks(with_counts(found, padding_positions=0))
    after = tables.remarks(with_counts(found, **{"padding_positions": 0, **changes}))
    (added,) = set(after) - set(before)
    assert words in added


def test_copies_and_leaks_are_remarked(found):
    # The words of an example follow from its first one, of which there are 35.
    remarks = "\n".join(tables.remarks(found))
    assert "of the training text is there before: --drop_near_duplicates" in remarks
    assert "of the held-out text is in the training examples, too" in remarks
    rows = rows_of(found, "Repeated text")
    assert rows["training examples that are copies"][0].startswith(
        f"{found.repetition.rows.copies} of 86, ")
    assert rows["held-out examples in training"][0].startswith(
        f"{found.repetition.held_out.seen_rows.sum()} of 10 as a whole")


def test_records_without_held_out_examples(tmp_path):
    made = tiny_records.write(tmp_path / "records")
    shards = made.shards_of("train")
    dataclasses.replace(made, shards=shards, counts=tiny_records.counts_of(shards)).save(
        tmp_path / "records")
    found = survey.survey(reading.open_records(tmp_path / "records"), EVERYTHING)
    assert any("nothing to read (--held_out_fraction" in line for line in tables.remarks(found))
    assert "held-out passages in training" not in rows_of(found, "Repeated text")


def text_of(found):
    shown = examples.masked_examples(found, 4, MaskingConfig(), seed=1, draws=1)
    return "\n\n".join([*map(terminal.table_text, tables.tables(found)),
                        terminal.examples_text(shown),
                        terminal.remarks_text(tables.remarks(found))])


def test_text_fits_100_columns(found):
    text = text_of(with_counts(
        found, unknown_words=5, tokenizer_words=9, unknown_by_script={"Old Italic": 5}))
    assert max(map(terminal.columns, text.splitlines())) <= 100
    assert all(line == line.rstrip() for line in text.splitlines())
    assert "\u00a0" not in text and "«" in text


@pytest.mark.parametrize("piece", ["漢字", "a\u0301", "\u202edlrow", "\u200b", "ไทย" * 40])
def test_no_piece_disturbs_the_terminal(tmp_path, piece):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, piece, *(f"word{index}" for index in range(34))))
    tiny_records.write(tmp_path / "records", vocabulary)
    text = text_of(survey.survey(reading.open_records(tmp_path / "records"), EVERYTHING))
    assert all(char.isprintable() for char in text.replace("\n", ""))
    if terminal.columns(piece) < 50:
        assert max(map(terminal.columns, text.splitlines())) <= 100


def test_pieces_of_a_word_stand_together_and_marks_say_what_is_read():
    example = examples.MaskedExample(
        place=reading.Place(manifest.Shard(name="a", split="train", examples=1, tokens=8, bytes=9,
                                           sha256="0" * 64), 0),
        split="train", tokens=("[CLS]", "un", "##able", "to", "[SEP]", "##s", "go", "[SEP]"),
        segments=np.array([0, 0, 0, 0, 0, 1, 1, 1]),
        selected=np.array([[0, 0, 1, 1, 0, 0, 1, 0]], bool),
        read=(("[CLS]", "un", "[MASK]", "to", "[SEP]", "##s", "word", "[SEP]"),))
    assert terminal.example_text(example, 1).splitlines() == [
        "1. training, a, example 0: 8 tokens (5 + 3), 3 to be found",
        "  A  [CLS] un«able» {to} [SEP]",
        "  B  s (go→word) [SEP]"]
