"""Tables and remarks hold true numbers; their text fits a terminal."""

import dataclasses

import pytest

from electra_tf.apps.inspection import examples, report, survey
from electra_tf.config.pretraining import MaskingConfig
from electra_tf.reporting.tables import columns, percent
from electra_tf.text.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tiny_records


def with_counts(found, **changes):
    """The same examples, of a build that counted otherwise."""
    made = found.records.manifest
    made = dataclasses.replace(made, counts=dataclasses.replace(made.counts, **changes))
    return dataclasses.replace(found, records=dataclasses.replace(found.records, manifest=made))


def table_of(found, title):
    (table,) = [table for table in report.tables(found) if table.title.startswith(title)]
    return table


def rows_of(found, title):
    return {row[0].strip(): row[1:] for row in table_of(found, title).rows}


def test_records_are_described(found):
    rows = rows_of(found, "Records")
    assert rows["training examples"] == ("86 in 3 shards",)
    assert rows["held-out examples"] == ("10 in 1 shard",)
    assert "left out by cleaning" not in rows and "skipped as damaged" not in rows
    other = rows_of(with_counts(found, dropped_text_bytes=2_000_000, skipped_documents=1),
                    "Records")
    assert other["left out by cleaning"] == ("2.0 MB of text",)
    assert other["skipped as damaged"] == ("1 document",)


def test_lengths_add_up(found):
    rows = rows_of(found, "Lengths")
    assert list(rows) == ["1 to 4", "5 to 8", "9 to 12", "13 to 16", "17 to 20", "21 to 24",
                          "25 to 28", "29 to 31", "32"]
    assert sum(int(row[0]) for row in rows.values()) == 86
    assert sum(int(row[2]) for row in rows.values()) == 10
    assert int(rows["32"][0]) == found.splits["train"].lengths[32] > 50


def test_unknown_words_are_those_that_the_build_counted(found):
    rows = rows_of(with_counts(found, unknown_words=7, unknown_by_script={"Latin": 4, "Thai": 3}),
                   "Words")
    words = sum(int(each.pieces[5:].sum()) for each in found.splits.values())
    assert rows["Latin"] == (f"{words:,}", "100 %", "1.00", "4", percent(4, 4 + words))
    assert rows["Thai"] == ("0", "0 %", "-", "3", "100 %")
    assert rows["all"][3] == "7"


def test_words_are_counted_by_script_with_their_pieces(found):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "the", "##s", "дом", "漢", "!", "7",
                             *(f"##{index}" for index in range(29))))
    splits = {name: dataclasses.replace(counts, pieces=counts.pieces * 0)
              for name, counts in found.splits.items()}
    splits["train"].pieces[[1, 5, 6, 7, 9]] = 2, 4, 6, 3, 1
    other = dataclasses.replace(found, splits=splits, records=dataclasses.replace(
        found.records, vocabulary=vocabulary))
    rows = rows_of(with_counts(other, unknown_words=2), "Words")
    assert rows == {"Latin": ("4", "50.0 %", "2.50", "0", "0 %"),
                    "Cyrillic": ("3", "37.5 %", "1.00", "0", "0 %"),
                    "signs": ("1", "12.5 %", "1.00", "0", "0 %"),
                    report.NOT_RECORDED: ("0", "0 %", "-", "2", "100 %"),
                    "all": ("8", "100 %", "1.75", "2", "20.0 %")}


def test_what_is_unusual_is_remarked_with_the_fix(found):
    before = report.remarks(with_counts(found, padding_positions=0))
    for changes, words in (({"unknown_words": 6, "tokenizer_words": 100}, "build_vocab"),
                           ({"padding_positions": 2000}, "--packing=full")):
        after = report.remarks(with_counts(found, **{"padding_positions": 0, **changes}))
        (added,) = set(after) - set(before)
        assert words in added
    copies, leaks = set(report.remarks(dataclasses.replace(found, copies=5, leaked=1))) - set(
        report.remarks(found))
    assert "--drop_near_duplicates" in copies and "--drop_near_duplicates" in leaks
    records = found.records
    made = dataclasses.replace(records.manifest, shards=records.manifest.shards_of("train"))
    found = dataclasses.replace(found, records=dataclasses.replace(records, manifest=made))
    assert any("--held_out_fraction" in line for line in report.remarks(found))


@pytest.mark.parametrize("piece", ["word", "漢字", "a\u0301", "\u202edlrow", "\u200b", "ไทย" * 40])
def test_text_fits_100_columns_and_no_piece_disturbs_the_terminal(tmp_path, piece):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, piece, *(f"word{index}" for index in range(34))))
    tiny_records.write(tmp_path / "records", vocabulary)
    found = with_counts(
        survey.survey(survey.open_records(tmp_path / "records")),
        unknown_words=5, tokenizer_words=9, unknown_by_script={"Old Italic": 5})
    text = report.text(found, examples.masked_examples(
        found.records, 4, MaskingConfig(), seed=1, draws=1))
    assert all(char.isprintable() for char in text.replace("\n", "")) and "«" in text
    assert all(line == line.rstrip() for line in text.splitlines())
    if columns(piece) < 50:
        assert max(map(columns, text.splitlines())) <= 100
