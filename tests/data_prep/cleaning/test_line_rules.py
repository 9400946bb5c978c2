"""Rules for single lines: what they drop, and similar lines that they keep."""

import pytest

from data_prep.cleaning.line_rules import is_boilerplate, reason_to_drop
from data_prep.settings import CleaningSettings

BOILERPLATE = [
    "All rights reserved.", "Alle Rechte vorbehalten", "© 2019 Example Media Group",
    "Copyright (c) 2003-2011 The Authors. All Rights Reserved", "(C) Example 1999",
    "This website uses cookies to give you the best experience.", "Accept all cookies",
    "Wir verwenden Cookies, um Inhalte zu personalisieren.", "Ce site utilise des cookies.",
    "Please enable JavaScript to view the comments.", "JavaScript is disabled in your browser",
    "Your browser does not support the video tag.", "Home | About us | News | Contact",
    "Startseite » Themen » Wirtschaft", "Share on Facebook Twitter LinkedIn",
    "Facebook | Twitter | E-mail", "» Read more …", "[Skip to content]", "Weiterlesen",
    "https://www.example.org/a/b?c=d", "www.example.org", "Lorem ipsum dolor sit amet, elit.",
]
PROSE = [
    "She baked cookies for the whole office, and everybody took one.",
    "The cookie was introduced by Lou Montulli in 1994.", "JavaScript is a programming language.",
    "He told her to share it on Facebook and on Twitter.", "Read more books than you write.",
    "Facebook", "Print and copy", "See https://www.example.org for details.",
    "The rights reserved to the states were few.", "One | two", "References",
    "Copyright law was reformed in 1976, and again in 1998, after long debates.",
    "If a > b > c, then a > c holds too.", "Contact between the two cultures",
    "This website uses cookies. " + "And then it goes on as an article. " * 20,
]


def test_boilerplate_is_detected_and_prose_is_not():
    assert [line for line in BOILERPLATE if not is_boilerplate(line)] == []
    assert [line for line in PROSE if is_boilerplate(line)] == []


@pytest.mark.parametrize(("line", "settings", "reason"), [
    ("12,345 - 67 %", {"drop_letterless_lines": True}, "letterless_lines"),
    ("x = 3", {"drop_letterless_lines": True}, ""),
    ("第一", {"drop_letterless_lines": True}, ""),
    ("four", {"min_line_characters": 4}, ""),
    ("for", {"min_line_characters": 4}, "short_or_long_lines"),
    ("four", {"max_line_characters": 4}, ""),
    ("fours", {"max_line_characters": 4}, "short_or_long_lines"),
    ("All rights reserved.", {"drop_boilerplate": True}, "boilerplate_lines"),
    ("All rights reserved.", {}, ""),
])
def test_a_line_is_dropped_for_one_reason(line, settings, reason):
    assert reason_to_drop(line, CleaningSettings(**settings)) == reason
