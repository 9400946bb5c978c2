"""The page in a real browser; where there is none, what is sent of it."""

import dataclasses
import html
import re

import pytest

from electra_tf.apps.demo.replaced_tokens import ReplacedTokenDetection
from electra_tf.reporting import pages
from tests.apps.demo.test_demo import ask
from tests.apps.serving import browser

SENTENCE = "word1 word2 word3s word4, word5 word6ing word7 word8."


def test_the_page_is_one_file_that_loads_nothing(address):
    status, headers, content = ask(address)
    text = content.decode("utf-8")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert all(headers[name] == value for name, value in pages.HEADERS.items())
    assert re.findall(r"(?:src|href|url\()\s*=?\s*[\"']?(?!data:)\w", text) == []
    assert "innerHTML" not in text and "{{" not in text and "the tiny networks" in text
    assert all(f'<label for="{name}">' in text for name in ("sentence", "rate", "temperature"))


def test_the_source_is_no_markup(serving, networks):
    evil = dataclasses.replace(networks, source="<script>alert(1)</script>")
    with serving(ReplacedTokenDetection(evil)) as address:
        text = ask(address)[2].decode()
    assert html.escape(evil.source) in text and evil.source not in text


@pytest.fixture(scope="module")
def page():
    with browser.browser() as opened:
        yield opened


@browser.in_a_browser
class TestPage:
    def open(self, page, address):
        page.open(address)
        page.wait_for("!document.getElementById('result').hidden")

    def ask(self, page, address, sentence=SENTENCE):
        """Opens the page and asks with the keyboard alone."""
        self.open(page, address)
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

    def slide(self, page, name, value):
        self.change(page, lambda: page.script(
            "const slider = document.getElementById(arguments[0]); slider.value = arguments[1];"
            "for (const kind of ['input', 'change']) slider.dispatchEvent(new Event(kind))",
            name, value))

    def test_words_masks_verdicts_and_sliders(self, page, address):
        self.ask(page, address)
        assert len(page.texts_of("#masked > li")) == 10  # Pieces stand with their words.
        assert page.texts_of(".slot") == ["[MASK] 1", "[MASK] 2", "[MASK] 3"]
        judged = page.texts_of("#judged .token")
        assert len(judged) == 12
        (summary,) = page.texts_of("#summary[role=status]")
        assert summary.startswith("3 of 12 tokens filled in: ")
        self.change(page, lambda: page.script("document.getElementById('again').click()"))
        assert page.texts_of("#judged .token") != judged
        again = page.texts_of("#masked > li")
        self.slide(page, "temperature", -40)
        assert page.texts_of("#temperature-shown") == ["0.01"]
        assert page.texts_of("#masked > li") == again
        assert "softmax(logits / 0.01)" in page.texts_of("#candidates p")[0]
        self.slide(page, "rate", 90)
        assert page.texts_of("#rate-shown") == ["90 %"]
        assert len(page.texts_of(".slot")) == 11

    def test_a_mask_is_opened_with_the_keyboard(self, page, address):
        self.ask(page, address)
        opened = "return [...document.querySelectorAll('.slot')].map(node => node.ariaExpanded)"
        assert page.script(opened) == ["true", "false", "false"]
        page.script("document.querySelector('.slot').focus()")
        page.keys("\ue004 ")  # Tab to the next one, space opens it.
        assert page.script(opened) == ["false", "true", "false"]
        assert page.texts_of("#candidates h3")[0].startswith("[MASK] 2")
        assert len(page.texts_of(".bar")) >= 8
        assert sorted(page.texts_of(".tag")) == ["drawn", "original"]

    def test_errors_are_seen_in_words(self, page, address):
        self.ask(page, address, " ")
        assert page.texts_of("#error:not([hidden])") == [
            "That didn't work: the sentence has no words; write some."]
        page.keys("word1")
        page.hold("\ue009", "\ue007")
        page.wait_for("!document.getElementById('result').hidden")
        assert page.texts_of("#error:not([hidden])") == []
