"""Pages, help texts and docstrings use the glossary."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
         *sorted(ROOT.glob("docs/**/*.md")), *ROOT.glob("benchmarks/*.md"),
         *sorted(ROOT.glob("experiments/log/*.md"))]
SOURCES = [path for package in ("electra_tf", "data_prep", "benchmarks", "experiments")
           for path in sorted((ROOT / package).rglob("*.py"))]
GLOSSARY = {
    "neighbou?r heads?|heads? that looks?": "previous-token head, next-token head",
    "matching heads?": "duplicate-token head",
    r"(learn|know)\w* by heart": "memorize, overfit",
    "matrix products?|by products": "matrix multiplication, matmul",
    "start of the weights|how (its |the )?weights (begin|start)": "initialization",
    r"\b(is|are|was) right in\b|\bright in \d|share of right": "accuracy",
    "replacements that (don't|do not) change|fixed corruptions?": "fixed-noise evaluation",
    r"\b(be|is|are|was) held to\b|hold to": "test against, compare with",
    "take back|takes back": "import",
    r"attention sight|\bsights?\b": "attention mask",
    r"\bpeers?\b": "baseline, or the system's name",
    r"\b(drawer|a room of|houses?)\b": "module, package",
    r"\bshuffl\w+ windows?\b": "shuffle buffer",
    r"rates? of [\d,.]+ (million )?(tokens|examples|texts)": "throughput",
    r"questions about (a|the) texts?\b": "extractive QA",
}
"""A pattern that is not written, and the term to write instead; case and code are ignored."""


def prose(page):
    """Returns a page's text without code, front matter, pictures and addresses."""
    text = re.sub(r"(?ms)\A---\n.*?^---\n|^```.*?^```|^(?: {4}|\t).*?$|`[^`]*`|<[^>]*>", " X ",
                  page.read_text(encoding="utf-8"))
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def docstrings(path):
    """Returns the docstrings of a module and of all in it, help texts too, without code."""
    return [re.sub(r"`[^`]*`", " X ", " ".join(node.value.value.split()))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)]


def findings(text):
    """Returns the terms of a text that the glossary replaces, with what to write instead."""
    return [(match[0], better) for pattern, better in GLOSSARY.items()
            for match in re.finditer(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_use_the_glossary(page):
    assert findings(prose(page)) == []


def test_docstrings_use_the_glossary():
    texts = [(path.name, text) for path in SOURCES for text in docstrings(path)]
    assert len(texts) > 1000
    assert {(name, *finding) for name, text in texts for finding in findings(text)} == set()


def test_no_two_classes_of_the_product_have_the_same_name():
    names = [node.name for path in SOURCES
             for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.ClassDef)]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []
