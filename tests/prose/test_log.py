"""The log of experiments has a current index, and pages quote current entries."""

import datetime
import re

from experiments import log_index

ENTRIES = {entry.name: entry for entry in log_index.entries()}
ROOT = log_index.LOG.parents[1]


def test_the_logs_index_is_current_and_its_entries_are_complete():
    assert (log_index.LOG / "README.md").read_text() == log_index.index()
    for name, entry in ENTRIES.items():
        assert name.startswith(str(datetime.date.fromisoformat(entry.date)))
        if entry.status not in (log_index.CURRENT, log_index.OBSOLETE):
            newer = ENTRIES[entry.status.removeprefix(log_index.SUPERSEDED)]
            assert newer.date >= entry.date and newer.status == log_index.CURRENT, name


def test_pages_do_not_quote_superseded_entries():
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
    quoted = {(page.name, name) for page in pages
              for name in re.findall(r"experiments/log/([\w-]+)\.md", page.read_text())}
    assert {(page, name) for page, name in quoted
            if name != "README" and ENTRIES[name].status != log_index.CURRENT} == set()
