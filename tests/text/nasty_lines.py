"""Lines that tokenizers stumble over, generated from a seed."""

import random
import unicodedata
from collections.abc import Iterable

WORDS = [
    "the", "Running", "naïve", "Ångström", "İstanbul", "ISPARTA", "straße",
    "ΟΔΟΣ", "Σ", "ΑΣΑ", "Ǆ", "ﬁne", "１２３", "x²", "한국어", "한국어", "ᄀ", "中文",
    "日本語テキスト", "豈", "丽", "привет", "ЁЖ", "שלום", "مرحبا", "हिन्दी", "ไทย", "👍🏽",
    "👩‍👩‍👧", "🇩🇪", "[MASK]", "[CLS]", "[UNK]", "##ing",
    "https://example.org/a/b?c=d&e=%20#f", "me@x.org", "don't", "3.14",
    "1,000,000", "C++", "a_b", "--", "...", "!?!?", "$5", "^", "`", "~", "§",
    "«q»", "“q”", "—", "€", "№", "°", "e\u0301", "a\u0300\u0301\u0302", "\u0301",
    "q\u0323\u0307", "I\u0307", "Ì", "Į́", "ﷺ", "K", "ſ",
]
ODD = ["\u00a0", "\u2028", "\u2029", "\u200b", "\u200d", "\u200e", "\u202e", "\ufeff", "\u3000",
       "\x00", "\x07", "\x1c", "\x85", "\x7f", "\ufffd", "\u00ad", "\u180e", "\ue000", "\uffff",
       "\U000f0000", "\t", "\r", "\n", "\v", "\f", "  ", "\u2003", "\u1680"]

_UNICODE_15_1 = {*range(0x2FFC, 0x3000), 0x31EF, *range(0x2EBF0, 0x2EE5E)}
"""Assigned in Python 3.13's tables, and not yet in TensorFlow's, which are of Unicode 15.0."""


def assigned(codes: Iterable[int]) -> list[str]:
    """Returns the characters among `codes` that both Python and TensorFlow know."""
    return [chr(code) for code in codes if code not in _UNICODE_15_1
            and unicodedata.category(chr(code)) not in ("Cn", "Cs")]


def lines(count: int, seed: int) -> list[str]:
    """Returns lines of words, odd characters, random characters, and words of about 200."""
    generator = random.Random(seed)
    known = assigned(range(0x20, 0x30000))
    pickers = [
        lambda: generator.choice(WORDS),
        lambda: generator.choice(WORDS).upper(),
        lambda: generator.choice(WORDS) + generator.choice(ODD) + generator.choice(WORDS),
        lambda: generator.choice(ODD),
        lambda: "".join(generator.choices(known, k=generator.randint(1, 6))),
        lambda: "".join(generator.choices(known[:3000], k=generator.randint(1, 12))),
        lambda: generator.choice("!.#-") * generator.randint(1, 300),
        lambda: generator.choice("aé中д\u0301👍") * generator.randint(195, 205)
        if generator.random() < 0.2 else "z" * generator.randint(1, 60),
    ]
    return [generator.choice(["", " "]).join(
        generator.choice(pickers)() for _ in range(generator.randint(1, 12)))
        for _ in range(count)]
