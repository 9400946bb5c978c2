"""Rules for single lines: what they drop, and similar lines that they keep."""

import pytest

from data_prep.cleaning.plan import reason_to_drop
from data_prep.settings import CleaningSettings


@pytest.mark.parametrize(("line", "settings", "reason"), [
    ("12,345 - 67 %", {"drop_letterless_lines": True}, "letterless_lines"),
    ("x = 3", {"drop_letterless_lines": True}, ""),
    ("第一", {"drop_letterless_lines": True}, ""),
    ("four", {"min_line_characters": 4}, ""),
    ("for", {"min_line_characters": 4}, "short_or_long_lines"),
    ("four", {"max_line_characters": 4}, ""),
    ("fours", {"max_line_characters": 4}, "short_or_long_lines"),
    ("12,345 - 67 %", {}, ""),
])
def test_a_line_is_dropped_for_one_reason(line, settings, reason):
    assert reason_to_drop(line, CleaningSettings(**settings)) == reason
