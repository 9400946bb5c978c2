"""The glossary and the length of sentences, in pages and code; names."""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = yaml.safe_load((Path(__file__).parent / "rules.yaml").read_text(encoding="utf-8"))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
         *sorted(ROOT.glob("docs/**/*.md")), *ROOT.glob("benchmarks/*.md"),
         *sorted(ROOT.glob("experiments/log/*.md"))]
SOURCES = [path for package in ("electra_tf", "data_prep", "benchmarks", "experiments")
           for path in sorted((ROOT / package).rglob("*.py"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def prose(page):
    """Returns a page's text without code, front matter, pictures and addresses."""
    text = re.sub(r"(?ms)\A---\n.*?^---\n|^```.*?^```|^(?: {4}|\t).*?$|`[^`]*`|<[^>]*>", " X ",
                  page.read_text(encoding="utf-8"))
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def lengths(page):
    """Returns the number of words of each sentence; tables and headings are left out."""
    text = re.sub(r"(?m)^ *(\||#|\*\*Command).*$", ".", prose(page))
    text = re.sub(r"(?m)^\s*([-*]|\d+\.) ", ". ", text)
    sentences = re.split(r"[.!?:;](?:\s|$|\*)|\n\s*\n", text)
    counts = (len(re.findall(r"[A-Za-z]\S*", sentence)) for sentence in sentences)
    return [count for count in counts if count]


def help_texts(path):
    """Returns the texts of a module's flags and settings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and "Section" in ast.unparse(node):
            for field, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    yield " ".join(ast.literal_eval(text.value).split())
        if isinstance(node, ast.Call) and ".DEFINE_" in ast.unparse(node.func):
            yield from (argument.value for argument in node.args[2:]
                        if isinstance(argument, ast.Constant) and isinstance(argument.value, str))


def docstrings(path):
    """Returns the docstrings of a module and of all in it, without code."""
    return [re.sub(r"`[^`]*`", " X ", " ".join(node.value.value.split()))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)]


def findings(text, rules):
    """Returns the forbidden terms of a text with what to write instead."""
    return [(match[0], better) for pattern, better in rules.items()
            for match in re.finditer(pattern, text, re.IGNORECASE)]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_pages_use_the_glossary(page):
    assert findings(prose(page), RULES["pages"]) == []


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_sentences_of_pages_are_short(page):
    words = lengths(page)
    assert not words or sum(words) / len(words) <= RULES["sentences"]["mean"]
    assert max(words, default=0) <= RULES["sentences"]["longest"]


@pytest.mark.parametrize(("texts_of", "min_count", "rules"), [
    (help_texts, 150, RULES["pages"] | RULES["help"]), (docstrings, 1000, RULES["pages"])])
def test_help_texts_and_docstrings_use_the_glossary(texts_of, min_count, rules):
    texts = [(path.name, text) for path in SOURCES for text in texts_of(path)]
    assert len(texts) > min_count
    assert {(name, *finding) for name, text in texts for finding in findings(text, rules)} == set()


def test_names_of_tests_have_at_most_70_characters():
    names = {(str(path), name) for path in (ROOT / "tests").rglob("test_*.py")
             for name in re.findall(r"(?m)^def (test_\w+)", path.read_text(encoding="utf-8"))}
    assert {(path, name) for path, name in names if len(name) > 70} == set()


def test_no_two_classes_of_the_product_have_the_same_name():
    names = [node.name for path in SOURCES
             for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.ClassDef)]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []
