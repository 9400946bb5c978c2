"""Every test in this directory is marked, and the end of the tests says what was tried."""

import pytest

from tests.support.attempts import tally


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/fuzz" in item.path.as_posix():
            item.add_marker(pytest.mark.fuzz)


def pytest_terminal_summary(terminalreporter):
    if tally:
        terminalreporter.section("fuzzed")
        for reader, outcomes in sorted(tally.items()):
            shown = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
            count = sum(outcomes.values())
            terminalreporter.write_line(f"{reader:<36}{count:>8,} cases  {shown}")
        total = sum(sum(outcomes.values()) for outcomes in tally.values())
        terminalreporter.write_line(f"{'in all':<36}{total:>8,} cases")
