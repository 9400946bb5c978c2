"""The experiment log: a current index, complete front matter, links that lead somewhere."""

import datetime
import re

from experiments import log_index


def test_the_index_is_the_one_that_the_tool_prints():
    assert (log_index.LOG / log_index.INDEX).read_text() == log_index.index()


def test_entries_have_a_date_and_a_known_status():
    found = {entry.name: entry for entry in log_index.entries()}
    assert len(found) > 40
    for name, entry in found.items():
        assert name.startswith(str(datetime.date.fromisoformat(entry.date)))
        if entry.status not in (log_index.CURRENT, log_index.OBSOLETE):
            newer = found[entry.status.removeprefix(log_index.SUPERSEDED)]
            assert newer.date >= entry.date and newer.status == log_index.CURRENT, name


def test_pages_and_code_do_not_quote_superseded_entries():
    root = log_index.LOG.parents[1]
    status = {entry.name: entry.status for entry in log_index.entries()}
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("benchmarks/*.md")]
    quoted = {(page.name, name) for page in pages
              for name in re.findall(r"experiments/log/([\w-]+)\.md", page.read_text())
              if name != "README"}
    assert {(page, name) for page, name in quoted
            if status.get(name) != log_index.CURRENT} == set()
