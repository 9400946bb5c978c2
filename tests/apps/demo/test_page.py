"""The page in a real browser; where there is none, what is sent of it."""

import dataclasses
import html
import re

import pytest

from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection
from electra_tf.apps.serving import page as server_page
from tests.apps.demo import running
from tests.apps.serving import browser

SENTENCE = "word1 word2 word3s word4, word5 word6ing word7 word8."

in_a_browser = pytest.mark.skipif(
    not (browser.CHROMIUM and browser.DRIVER),
    reason="needs Chromium and ChromeDriver (Debian: apt-get install chromium chromium-driver)")


def test_the_page_is_one_file_that_loads_nothing(client):
    status, headers, content = client.ask("GET", "/")
    text = content.decode("utf-8")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert all(headers[name] == value for name, value in server_page.HEADERS.items())
    assert re.findall(r"(?:src|href|url\()\s*=?\s*[\"']?(?!data:)\w", text) == []
    assert "innerHTML" not in text and "{{source" not in text and "the tiny networks" in text
    assert all(f'<label for="{name}">' in text for name in ("sentence", "rate", "temperature"))


def test_the_source_is_no_markup(networks):
    evil = dataclasses.replace(networks, source="<script>alert(1)</script>")
    with running.client(ReplacedTokenDetection(evil)) as client:
        _, text = client.send("GET", "/")
    assert html.escape(evil.source) in text and evil.source not in text


@pytest.fixture(scope="module")
def page():
    with browser.browser() as opened:
        yield opened


@in_a_browser
class TestPage:
    def open(self, page, client):
        """Opens the page; its own example asks for nothing that is wrong."""
        page.open(client.address)
        page.wait_for("!document.getElementById('result').hidden")

    def ask(self, page, client, sentence=SENTENCE):
        """Opens the page and asks with the keyboard alone."""
        self.open(page, client)
        page.script("document.getElementById('sentence').value = '';"
                    "document.getElementById('sentence').focus()")
        page.keys(sentence)
        self.change(page, lambda: page.hold("\ue009", "\ue007"))

    def change(self, page, act):
        """Waits until the page shows another answer, or an error."""
        page.script("window.before = document.getElementById('raw').textContent")
        act()
        page.wait_for("document.getElementById('raw').textContent !== window.before"
                      " || !document.getElementById('error').hidden")

    def texts_of(self, page, selector):
        return page.script("return [...document.querySelectorAll(arguments[0])]"
                           ".map(node => node.textContent)", selector)

    def slide(self, page, name, value):
        self.change(page, lambda: page.script(
            "const slider = document.getElementById(arguments[0]); slider.value = arguments[1];"
            "for (const kind of ['input', 'change']) slider.dispatchEvent(new Event(kind))",
            name, value))

    def test_words_masks_and_verdicts(self, page, client):
        self.ask(page, client)
        assert len(self.texts_of(page, "#masked > li")) == 10  # Pieces stand with their words.
        assert self.texts_of(page, ".slot") == ["[MASK] 1", "[MASK] 2", "[MASK] 3"]
        assert len(self.texts_of(page, "#judged .token")) == 12
        assert all(text.rstrip("abcdefghijklmnopqrstuvwxyz ").endswith("%")
                   for text in self.texts_of(page, "#judged .verdict"))
        (summary,) = self.texts_of(page, "#summary[role=status]")
        assert summary.startswith("3 of 12 tokens filled in: ")

    def test_marks_and_borders_say_what_colours_say(self, page, client):
        self.ask(page, client)
        drawn = page.script(
            "showJudged([['a', 'b', 'caught', .9], ['##s', '##ing', 'missed', .1],"
            "            ['##s', 'c', 'missed', .2], ['d', 'd', 'false alarm', .6],"
            "            ['e', 'e', 'restored', .05], ['f', 'f', 'untouched', 0]]"
            "  .map(([original, corrupted, outcome, replaced_probability]) =>"
            "       ({original, corrupted, outcome, replaced_probability})));"
            "return [...document.querySelectorAll('#judged .token')].map(node =>"
            "  [node.textContent, getComputedStyle(node).borderTopStyle])")
        assert drawn == [["a→b✓ 90 % caught", "solid"], ["s→ing✗ 10 % missed", "dashed"],
                         ["##s→c✗ 20 % missed", "dashed"], ["d! 60 % false alarm", "dotted"],
                         ["{e}5.0 % restored", "solid"], ["f0.0 %", "solid"]]
        assert len(self.texts_of(page, "#judged > li")) == 4

    def test_a_mask_is_opened_with_the_keyboard(self, page, client):
        self.ask(page, client)
        opened = "return [...document.querySelectorAll('.slot')].map(node => node.ariaExpanded)"
        assert page.script(opened) == ["true", "false", "false"]
        page.script("document.querySelector('.slot').focus()")
        page.keys("\ue004 ")  # Tab to the next one, space opens it.
        assert page.script(opened) == ["false", "true", "false"]
        (title,) = self.texts_of(page, "#candidates h3")
        assert title.startswith("[MASK] 2")
        assert len(self.texts_of(page, ".bar")) >= 8
        assert len(self.texts_of(page, ".bar.drawn")) == 1
        tags = self.texts_of(page, ".tag")
        assert sorted(tags) == ["drawn", "original"]

    def test_the_sliders_ask_again(self, page, client):
        self.ask(page, client)
        masks = self.texts_of(page, "#masked > li")
        self.slide(page, "temperature", -40)
        assert self.texts_of(page, "#temperature-shown") == ["0.01"]
        assert self.texts_of(page, "#masked > li") == masks
        assert "softmax(logits / 0.01)" in self.texts_of(page, "#candidates p")[0]
        self.slide(page, "rate", 90)
        assert self.texts_of(page, "#rate-shown") == ["90 %"]
        assert len(self.texts_of(page, ".slot")) == 11

    def test_draw_again_is_another_draw(self, page, client):
        self.ask(page, client)
        first = self.texts_of(page, "#judged > li")
        self.change(page, lambda: page.script("document.getElementById('again').click()"))
        assert self.texts_of(page, "#judged > li") != first

    def test_markup_is_text(self, page, client):
        evil = "<img/src=x/onerror=document.title='broken'>"
        self.ask(page, client, evil)
        assert page.script("return [document.title, document.images.length]") == [
            "ELECTRA on a sentence", 0]
        assert evil in self.texts_of(page, "#raw")[0].replace("'\\''", "'")

    def test_errors_are_seen_in_words(self, page, client):
        self.ask(page, client, " ")
        assert self.texts_of(page, "#error:not([hidden])") == [
            "That didn't work: the sentence has no words; write some."]
        page.keys("word1")
        page.hold("\ue009", "\ue007")
        page.wait_for("!document.getElementById('result').hidden")
        assert self.texts_of(page, "#error:not([hidden])") == []

    def test_a_server_that_is_gone_is_seen(self, page, detection):
        with running.client(detection) as client:
            self.open(page, client)
        page.script("document.getElementById('again').click()")
        page.wait_for("!document.getElementById('error').hidden")
        assert "can't be reached" in self.texts_of(page, "#error")[0]

    @pytest.mark.parametrize("sentence", [SENTENCE, "x" * 150 + " word1"])
    def test_it_fits_a_phone(self, page, client, sentence):
        width = {"width": 360, "height": 700, "deviceScaleFactor": 1, "mobile": True}
        page.command("goog/cdp/execute", cmd="Emulation.setDeviceMetricsOverride", params=width)
        try:
            self.ask(page, client, sentence)
            assert page.script("return document.documentElement.scrollWidth") == 360
        finally:
            page.command("goog/cdp/execute", cmd="Emulation.clearDeviceMetricsOverride", params={})

    def test_light_and_dark_follow_the_desktop(self, page, client):
        self.open(page, client)
        colours = []
        for scheme in ("light", "dark"):
            page.colours(scheme)
            colours.append(page.script("return getComputedStyle(document.body).backgroundColor"))
        assert colours == ["rgb(246, 247, 249)", "rgb(20, 22, 26)"]
