"""Links of the pages lead to files and headings that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md"),
         *ROOT.glob("experiments/log/*.md")]
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page):
    """Returns the anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    broken = []
    for page in PAGES:
        for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or anchor and anchor not in anchors(path):
                broken.append(f"{page}: {target}#{anchor}")
    assert broken == []


def test_pages_that_sources_name_exist():
    sources = [path for package in ("electra_tf", "data_prep", "experiments", "benchmarks")
               for path in (ROOT / package).rglob("*.py")]
    named = {(path.name, page) for path in sources
             for page in re.findall(r"docs/[a-z_/]+\.md", path.read_text(encoding="utf-8"))}
    assert len(named) > 10
    assert {(source, page) for source, page in named if not (ROOT / page).exists()} == set()
