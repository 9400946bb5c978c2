"""Speeds and scores that a page states are listed in docs/numbers.yaml with their measurement."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), ROOT / "benchmarks" / "README.md"]
NUMBERS = yaml.safe_load((ROOT / "docs" / "numbers.yaml").read_text(encoding="utf-8"))
CLAIM = re.compile(
    r"(?P<speed>\d[\d,.]*)(?: million)? (?:tokens|examples|texts|sentences|questions|requests)/s"
    r"|(?:AUC|F1|[Aa]ccuracy|recall|precision|correlation|exact match)[^.|\n\d(-]{0,40}?"
    r"(?P<score>0\.\d+|\d+\.\d|\d+ %)")


def claims(text: str) -> set[str]:
    """Returns the numbers of the speeds and scores in a text."""
    return {(found["speed"] or found["score"]).removesuffix(" %")
            for found in CLAIM.finditer(re.sub(r"\s+", " ", text))}


def test_claims_are_found_in_sentences():
    assert claims("It trains at 7,825 tokens/s and\nends at an AUC of 0.84, recall 31 %.") == {
        "7,825", "0.84", "31"}


def test_pages_state_listed_numbers_only():
    listed = {number["number"] for number in NUMBERS}
    stray = {(page.name, claim) for page in PAGES
             for claim in claims(page.read_text(encoding="utf-8")) - listed}
    assert stray == set()


def test_listed_numbers_are_measured_where_they_say():
    missing = []
    for number in NUMBERS:
        assert ("log" in number) != ("source" in number), number
        if "log" in number:
            entry = ROOT / "experiments" / "log" / f"{number['log']}.md"
            value = number.get("measured", number["number"])
            if not re.search(rf"(?<![\d.,]){re.escape(value)}(?!\d)", entry.read_text()):
                missing.append(number)
    assert missing == []


def test_listed_numbers_are_stated():
    text = " ".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [number for number in NUMBERS if number["number"] not in text] == []
