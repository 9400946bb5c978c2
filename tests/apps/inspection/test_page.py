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


@browser.in_a_browser
def test_a_choice_shows_the_masks_of_an_epoch(tmp_path, found, shown):
    with browser.browser() as page:
        (tmp_path / "page.html").write_text(report.page(found, shown, "x"), encoding="utf-8")
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
