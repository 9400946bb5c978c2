"""Links lead to files and headings that exist; the log of experiments has a current index."""

import datetime
import re

from experiments import log_index
from tests.support import sources

ROOT = sources.ROOT
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"),
         *ROOT.glob("examples/*.md"), *ROOT.glob("experiments/log/*.md")]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
ENTRIES = {entry.name: entry for entry in log_index.entries()}


def anchors(page):
    """Returns the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings():
    broken = []
    for page in PAGES:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or anchor and anchor not in anchors(path):
                broken.append(f"{page}: {target}#{anchor}")
    assert broken == []


def test_pages_that_sources_name_exist():
    named = {(str(path), page) for path in sources.sources() for page in re.findall(
        r"docs/[a-z_/]+\.md", (ROOT / path).read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert {(source, page) for source, page in named if not (ROOT / page).exists()} == set()


def test_python_files_that_pages_name_exist():
    files = [f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.rglob("*.py")
             if not path.relative_to(ROOT).parts[0].startswith(".")]
    named = {(page.name, name) for page in PAGES
             if "log" not in page.parts and page.stem not in (
                 "CHANGELOG", "your_text")
             for name in re.findall(r"`([\w/]+\.py)`", page.read_text(encoding="utf-8"))}
    assert len(named) > 30
    assert {(page, name) for page, name in named
            if not any(file.endswith(f"/{name}") for file in files)} == set()


def test_the_logs_index_is_current_and_its_entries_are_complete():
    assert (log_index.LOG / "README.md").read_text() == log_index.index()
    for name, entry in ENTRIES.items():
        assert name.startswith(str(datetime.date.fromisoformat(entry.date)))
        if entry.status not in (log_index.CURRENT, log_index.OBSOLETE):
            newer = ENTRIES[entry.status.removeprefix(log_index.SUPERSEDED)]
            assert newer.date >= entry.date and newer.status == log_index.CURRENT, name


def test_pages_do_not_quote_superseded_entries():
    quoted = {(page.name, name) for page in PAGES if "log" not in page.parts
              and page.stem != "CHANGELOG"
              for name in re.findall(r"experiments/log/([\w-]+)\.md", page.read_text())}
    assert {(page, name) for page, name in quoted
            if name != "README" and ENTRIES[name].status != log_index.CURRENT} == set()
