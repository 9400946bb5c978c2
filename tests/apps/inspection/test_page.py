"""The page in a real browser; where there is none, what is written of it."""

import html
import re

import pytest

from electra_tf.apps.inspection import examples, report
from electra_tf.config.masking import MaskingConfig
from tests.apps.inspection.test_examples import example_of
from tests.apps.serving import browser


@pytest.fixture(scope="module")
def shown(found):
    return examples.masked_examples(found.records, 3, MaskingConfig(rate=0.3), seed=1, draws=2)


def test_the_page_is_one_file_that_loads_nothing(found, shown):
    text = report.page(found, shown, "records")
    assert re.findall(r"(?:(?:src|href)\s*=|url\()\s*[\"']?(?!data:)\w", text) == []
    assert "<script" not in text and "{{" not in text and "default-src 'none'" in text
    assert report.page(found, [], "records").count("<h3>") == 0


def test_records_hold_no_markup(found):
    evil = "<script>alert(1)</script>{{title}}"
    text = report.page(
        found, [example_of("[CLS]", evil, "&amp;", "a", "b", name="<b>.tfrecord")], evil)
    assert evil not in text and html.escape(evil) in text
    assert "&amp;amp;" in text and "&lt;b&gt;.tfrecord" in text
    assert text.count("<h1>") == 1


@pytest.fixture(scope="module")
def opened():
    with browser.browser() as found:
        yield found


@browser.in_a_browser
class TestPage:
    def open(self, opened, tmp_path, text):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        opened.open(f"file://{tmp_path}/page.html")

    def colours(self, opened, selector):
        return opened.script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(node => getComputedStyle(node).backgroundColor)", selector)

    def test_segments_have_their_colours_and_pieces_their_words(self, opened, tmp_path, found):
        self.open(opened, tmp_path, report.page(found, [
            example_of("[CLS]", "un", "##able", "[SEP]", "##s", "##", "go", "[SEP]")], "x"))
        first, second = (set(self.colours(opened, f".text .{name}:not([class*=hidden])"))
                         for name in ("first", "second"))
        assert len(first) == len(second) == 1 and first != second
        words = opened.script("return [...document.querySelectorAll('.word')]"
                              ".map(node => node.childElementCount)")
        assert words == [1, 2, 1, 1, 1, 1, 1]

    def test_a_choice_shows_the_text_or_the_masks_of_an_epoch(self, opened, tmp_path, found,
                                                              shown):
        self.open(opened, tmp_path, report.page(found, shown, "records"))
        seen = []
        for draw in (1, 0, 2):
            opened.script("document.getElementById(arguments[0]).click()", f"draw-{draw}")
            seen.append(opened.script("return [...document.querySelectorAll('.text')]"
                                      ".map(node => node.innerText)"))
            assert [text.count("[MASK]") for text in seen[-1]] == [
                sum(piece.read[draw - 1] == "[MASK]" for piece in example.pieces) if draw else 0
                for example in shown]
            assert len(set(self.colours(opened, ".text .piece"))) == (3 if draw else 2)
        assert seen[0] != seen[2]
        opened.script("document.getElementById('draw-1').focus()")
        opened.keys("\ue014")  # The right arrow.
        assert opened.script("return document.querySelector('input:checked').id") == "draw-2"

    def test_it_fits_a_phone(self, opened, tmp_path, found, shown):
        with opened.as_phone():
            for word in ("word", "x" * 300):
                self.open(opened, tmp_path, report.page(
                    found, [*shown[:1], example_of("[CLS]", word, word, word)], f"records/{word}"))
                assert opened.script("return document.documentElement.scrollWidth") == 360
