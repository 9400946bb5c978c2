"""The script of a word is Unicode's, by its first letter."""

import unicodedata

import pytest

from electra_tf.text.word_scripts import DIGITS, OTHER, SIGNS, scripts_of


@pytest.mark.parametrize(("text", "script"), [
    ("word", "Latin"), ("##ß", "Latin"), ("3rd", "Latin"), ("x3", "Latin"), ("Ωmega", "Greek"),
    ("дом", "Cyrillic"), ("漢字", "Han"), ("かな", "Hiragana"), ("カナ", "Katakana"),
    ("한국", "Hangul"), ("\u1112\u1161", "Hangul"), ("שלום", "Hebrew"), ("سلام", "Arabic"),
    ("हिन्दी", "Devanagari"), ("ไทย", "Thai"), ("ᏣᎳᎩ", "Cherokee"), ("ꯃꯤꯇꯩ", OTHER),
    ("1,5", DIGITS), ("٣", "Arabic"), ("７", DIGITS), ("##7", DIGITS),
    ("—", SIGNS), ("😀", SIGNS), ("##", SIGNS), ("\u0301", SIGNS), ("", SIGNS)])
def test_the_script_of_a_text(text, script):
    assert scripts_of([text]) == [script]


def test_names_are_unicodes():
    """A letter's own name begins with its script's."""
    letters = [chr(code) for code in range(0x250, 0x1400)
               if unicodedata.category(chr(code)) in ("Lu", "Ll", "Lo")]
    named = [(letter, script) for letter, script in zip(letters, scripts_of(letters), strict=True)
             if script not in (SIGNS, OTHER)]
    right = [unicodedata.name(letter).startswith(script.upper()) for letter, script in named]
    assert len(named) > 1500 and sum(right) > 0.98 * len(right)


def test_texts_do_not_mix():
    texts = ["", "1", "a", "", "漢", "!", "б"]
    assert scripts_of(texts) == [script for text in texts for script in scripts_of([text])]
    assert scripts_of([]) == []
