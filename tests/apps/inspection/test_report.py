"""Numbers of tables and remarks, in a terminal and on the page."""

import dataclasses
import html
import re

import pytest

from electra_tf.apps.inspection import inspect_records, report
from electra_tf.apps.inspection.survey import masked_examples, take_survey
from electra_tf.config.corruption import MaskingConfig
from electra_tf.reporting.tables import columns
from electra_tf.text.vocabulary import MASK, SPECIAL_TOKENS, Vocabulary
from tests.support import browser, command_flags, tiny_records
from tests.support.refusals import refused


def with_counts(survey, **changes):
    """Returns the survey of a build that counted otherwise."""
    counts = dataclasses.replace(survey.manifest.counts, **changes)
    return dataclasses.replace(
        survey, manifest=dataclasses.replace(survey.manifest, counts=counts))


def rows_of(survey, title):
    (table,) = [table for table in report.tables(survey) if table.title.startswith(title)]
    return {row[0].strip(): row[1:] for row in table.rows}


def test_records_are_described(survey):
    rows = rows_of(survey, "Records")
    assert rows["training examples"] == ("86 in 3 shards",)
    assert rows["held-out examples"] == ("10 in 1 shard",)
    assert "left out by cleaning" not in rows and "skipped as damaged" not in rows
    other = rows_of(with_counts(survey, dropped_text_bytes=2_000_000, skipped_documents=1),
                    "Records")
    assert other["left out by cleaning"] == ("2.0 MB of text",)
    assert other["skipped as damaged"] == ("1 document",)


def test_lengths_add_up(survey):
    rows = rows_of(survey, "Lengths")
    assert list(rows) == ["1 to 4", "5 to 8", "9 to 12", "13 to 16", "17 to 20", "21 to 24",
                          "25 to 28", "29 to 31", "32"]
    assert sum(int(row[0]) for row in rows.values()) == 86
    assert sum(int(row[2]) for row in rows.values()) == 10
    assert int(rows["32"][0]) == survey.splits["train"].lengths[32] > 50


def test_words_are_counted_by_script_with_their_pieces(survey):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, "the", "##s", "дом", "漢", "!", "7",
                             *(f"##{index}" for index in range(29))))
    splits = {name: dataclasses.replace(counts, pieces=counts.pieces * 0)
              for name, counts in survey.splits.items()}
    splits["train"].pieces[[1, 5, 6, 7, 9]] = 2, 4, 6, 3, 1
    other = dataclasses.replace(survey, splits=splits, vocabulary=vocabulary)
    rows = rows_of(with_counts(other, unknown_words=2), "Words")
    assert rows == {"Latin": ("4", "50.0 %", "2.50", "0", "0 %"),
                    "Cyrillic": ("3", "37.5 %", "1.00", "0", "0 %"),
                    "signs": ("1", "12.5 %", "1.00", "0", "0 %"),
                    report.NOT_RECORDED: ("0", "0 %", "-", "2", "100 %"),
                    "all": ("8", "100 %", "1.75", "2", "20.0 %")}
    rows = rows_of(with_counts(other, unknown_words=7, unknown_by_script={"Latin": 4, "Thai": 3}),
                   "Words")
    assert rows["Latin"] == ("4", "50.0 %", "2.50", "4", "50.0 %")
    assert rows["Thai"] == ("0", "0 %", "-", "3", "100 %") and rows["all"][3] == "7"


def test_unusual_findings_are_remarked_with_their_fix(survey):
    before = report.remarks(with_counts(survey, padding_positions=0))
    for changes, words in (({"unknown_words": 6, "tokenizer_words": 100}, "build_vocab"),
                           ({"padding_positions": 2000}, "--packing=full")):
        after = report.remarks(with_counts(survey, **{"padding_positions": 0, **changes}))
        (added,) = set(after) - set(before)
        assert words in added
    copies, leaks = set(report.remarks(dataclasses.replace(survey, copies=5, leaked=1))) - set(
        report.remarks(survey))
    assert "--drop_near_duplicates" in copies and "--drop_near_duplicates" in leaks
    train = dataclasses.replace(survey, manifest=dataclasses.replace(
        survey.manifest, shards=survey.manifest.shards_of("train")))
    assert any("--held_out_fraction" in line for line in report.remarks(train))


@pytest.mark.parametrize("piece", ["word", "漢字", "a\u0301", "\u202edlrow", "\u200b", "ไทย" * 40])
def test_text_has_100_columns_and_printable_characters(tmp_path, piece):
    vocabulary = Vocabulary((*SPECIAL_TOKENS, piece, *(f"word{index}" for index in range(34))))
    tiny_records.write(tmp_path / "records", vocabulary)
    survey = with_counts(take_survey(tmp_path / "records"), unknown_words=5, tokenizer_words=9,
                         unknown_by_script={"Old Italic": 5})
    text = report.text(survey, masked_examples(survey, 4, MaskingConfig(), seed=1, draws=1))
    assert all(char.isprintable() for char in text.replace("\n", "")) and "«" in text
    assert all(line == line.rstrip() for line in text.splitlines())
    if columns(piece) < 50:
        assert max(map(columns, text.splitlines())) <= 100


@pytest.fixture(scope="module")
def shown(survey):
    return masked_examples(survey, 3, MaskingConfig(rate=0.3), seed=1, draws=2)


def test_the_page_escapes_text_and_needs_no_script(survey, shown, example_of):
    text = report.page(survey, shown, "records")
    assert "<script" not in text and "default-src 'none'" in text
    assert report.page(survey, [], "records").count("<h3>") == 0
    evil = "<script>alert(1)</script>{{title}}"
    text = report.page(survey, [example_of("[CLS]", evil, "&amp;", "a", "b", read={2: MASK},
                                           name="<b>.tfrecord")], evil)
    assert evil not in text and html.escape(evil) in text
    assert "&amp;amp;" in text and "&lt;b&gt;.tfrecord" in text


@browser.in_a_browser
def test_the_page_shows_the_masks_of_the_chosen_epoch(tmp_path, survey, shown):
    with browser.browser() as page:
        (tmp_path / "page.html").write_text(report.page(survey, shown, "x"), encoding="utf-8")
        page.open(f"file://{tmp_path}/page.html")
        seen = []
        for draw in (1, 0, 2):
            page.script("document.getElementById(arguments[0]).click()", f"draw-{draw}")
            seen.append(page.script("return [...document.querySelectorAll('.text')]"
                                      ".map(node => node.innerText)"))
            assert [text.count("[MASK]") for text in seen[-1]] == [
                sum(piece.read[draw - 1] == "[MASK]" for piece in example.pieces) if draw else 0
                for example in shown]
        assert seen[0] != seen[2]
        page.script("document.getElementById('draw-1').focus()")
        page.keys("\ue014")  # The right arrow.
        assert page.script("return document.querySelector('input:checked').id") == "draw-2"


def test_the_page_contains_the_printed_tables(survey, tmp_path, capsys):
    page = tmp_path / "records.html"
    command_flags.run(inspect_records, f"--html={page}", "--examples=2", "--set=masking.rate=0.5",
                      names=[survey.data_dir])
    printed = capsys.readouterr().out
    titles = re.findall(r"^(?=[A-Z])\S.*$", printed, re.MULTILINE)
    assert titles == ["Records", "Lengths", "Words, and those that became [UNK], by script",
                      "Pieces: 35 besides the special tokens",
                      "Examples, and what masking does to them", "What to look at"]
    assert printed.count(" selected\n") == 2
    assert printed.endswith(f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert all(f">{title}</h2>" in text for title in titles)
    assert text.count("<h3>") == 2


def test_wrong_arguments_are_refused(survey, tmp_path):
    records = survey.data_dir
    for directory, argument, words in (
            (tmp_path / "nowhere", "", "nowhere is not a directory; name the directory"),
            (tmp_path, "", "manifest.json does not exist"),
            (records, "--html=", "--html must name a file"),
            (records, f"--html={tmp_path}/nowhere/page.html", "in a directory that exists"),
            (records, "--set=masking.rate=2", r"masking.rate must be in \(0, 1\)")):
        with refused(words):
            command_flags.run(inspect_records, *filter(None, [argument]), names=[directory])
