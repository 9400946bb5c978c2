"""The page in a real browser; where there is none, what is written of it."""

import html
import re

import numpy as np
import pytest

from electra_tf.apps.inspection import examples, page, reading
from electra_tf.config.masking import MaskingConfig
from electra_tf.data import manifest
from tests.apps.serving import browser

in_a_browser = pytest.mark.skipif(
    not (browser.CHROMIUM and browser.DRIVER),
    reason="needs Chromium and ChromeDriver (Debian: apt-get install chromium chromium-driver)")


@pytest.fixture(scope="module")
def shown(found):
    return examples.masked_examples(found, 3, MaskingConfig(rate=0.3), seed=1, draws=2)


def example_of(*tokens):
    """One example of two segments, whose third token is hidden in the only draw."""
    read = (*tokens[:2], "[MASK]", *tokens[3:])
    shard = manifest.Shard(name="<b>.tfrecord", split="train", examples=1, tokens=8, bytes=9,
                           sha256="0" * 64)
    return examples.MaskedExample(
        place=reading.Place(shard, 0), split="train", tokens=tokens,
        segments=np.arange(len(tokens)) // 4, read=(read,),
        selected=np.array([[index == 2 for index in range(len(tokens))]]))


def test_the_page_is_one_file_that_loads_nothing(found, shown):
    text = page.of(found, shown, "records")
    assert re.findall(r"(?:(?:src|href)\s*=|url\()\s*[\"']?(?!data:)\w", text) == []
    assert "<script" not in text and "{{" not in text and "default-src 'none'" in text
    assert page.of(found, [], "records").count("<h3>") == 0


def test_nothing_of_the_records_is_markup(found):
    evil = "<script>alert(1)</script>{{body}}"
    text = page.of(found, [example_of("[CLS]", evil, "&amp;", "a", "b")], evil)
    assert evil not in text and html.escape(evil) in text
    assert "&amp;amp;" in text and "&lt;b&gt;.tfrecord" in text
    assert text.count("<h1>") == 1


@pytest.fixture(scope="module")
def opened():
    with browser.browser() as found:
        yield found


@in_a_browser
class TestPage:
    def open(self, opened, tmp_path, text):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        opened.open(f"file://{tmp_path}/page.html")

    def visible(self, opened):
        """What of the examples is seen."""
        return opened.script(
            "return [...document.querySelectorAll('.text')].map(node => node.innerText)")

    def colours(self, opened, selector):
        return opened.script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map(node => getComputedStyle(node).backgroundColor)", selector)

    def test_segments_have_their_colours_and_pieces_their_words(self, opened, tmp_path, found):
        self.open(opened, tmp_path, page.of(found, [
            example_of("[CLS]", "un", "##able", "[SEP]", "##s", "##", "go", "[SEP]")], "x"))
        first, second = (set(self.colours(opened, f".text .{name}:not([class*=hidden])"))
                         for name in ("first", "second"))
        assert len(first) == len(second) == 1 and first != second
        words = opened.script("return [...document.querySelectorAll('.word')]"
                              ".map(node => node.childElementCount)")
        assert words == [1, 2, 1, 1, 1, 1, 1]

    def test_a_choice_shows_the_text_or_the_masks_of_an_epoch(self, opened, tmp_path, found,
                                                              shown):
        self.open(opened, tmp_path, page.of(found, shown, "records"))
        seen = []
        for draw in (1, 0, 2):
            opened.script("document.getElementById(arguments[0]).click()", f"draw-{draw}")
            texts = self.visible(opened)
            seen.append(texts)
            hidden = [sum(token != instead for token, instead in zip(
                example.tokens, example.read[draw - 1], strict=True)) if draw else 0
                for example in shown]
            assert [text.count("[MASK]") for text in texts] == hidden
            assert len(set(self.colours(opened, ".text .piece"))) == (3 if draw else 2)
        assert seen[0] != seen[2] and all(hidden)

    def test_the_choice_works_with_the_keyboard(self, opened, tmp_path, found, shown):
        self.open(opened, tmp_path, page.of(found, shown, "records"))
        opened.script("document.getElementById('draw-1').focus()")
        opened.keys("\ue014")  # The right arrow.
        assert opened.script("return document.querySelector('input:checked').id") == "draw-2"

    @pytest.mark.parametrize("word", ["word", "x" * 300])
    def test_it_fits_a_phone(self, opened, tmp_path, found, shown, word):
        width = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
        opened.command("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=width)
        try:
            self.open(opened, tmp_path, page.of(
                found, [*shown[:1], example_of("[CLS]", word, word, word)], f"records/{word}"))
            assert opened.script("return document.documentElement.scrollWidth") == 360
        finally:
            opened.command("goog/cdp/execute", cmd="Emulation.clearDeviceMetricsOverride",
                           params={})

    def test_light_and_dark_follow_the_desktop(self, opened, tmp_path, found, shown):
        self.open(opened, tmp_path, page.of(found, shown, "records"))
        colours = []
        for scheme in ("light", "dark"):
            opened.colours(scheme)
            colours.append(opened.script(
                "return getComputedStyle(document.body).backgroundColor"))
        assert colours == ["rgb(246, 247, 249)", "rgb(20, 22, 26)"]
