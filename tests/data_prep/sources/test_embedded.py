"""Prose of docstrings without markup, and a task made of it whose dev set is not trained on."""

import ast
import importlib

import pytest

from data_prep import build_word_order_task
from data_prep.sources import embedded
from data_prep.sources.registry import open_source
from tests.data_prep.reading import documents_of
from tests.support import command_flags

DOCSTRING = '''Return the mean of ``values`` along an axis, see :func:`~lib.median` [1]_.

    The mean is the sum of the elements along the axis divided by
    the number of elements.  Read `the guide <a>` for more of the details.

    values : array_like
        Array with the numbers whose mean is wanted, of any shape at all.

    Args:
      axis: The axis along which the means are computed, the last by default.

    .. note:: This is a directive, which is markup and holds no prose.

    - This is an item of a list, which belongs to what stands before it.

    >>> mean([1, 2, 3])  # This is an example and it is not prose at all.

    The formula for it is \\\\frac{1}{n} times the sum of all of its values.

    This paragraph has no mark at its end and therefore it is not a sentence
    '''
NESTED = """
try:
    with a:
        class First: "1"
except b:
    def second(): "2"
match c:
    case 1:
        def third(): "3"
def fourth(): "4"
"""
PROSE = [
    "Return the mean of values along an axis, see lib.median.",
    "The mean is the sum of the elements along the axis divided by the number of elements. Read "
    "the guide <a> for more of the details."]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package of functions with a docstring each the only one that is read."""

    def write(docstrings):
        (tmp_path / "unimportable").mkdir()
        (tmp_path / "unimportable" / "__init__.py").write_text("raise AssertionError\n")
        (tmp_path / "unimportable" / "code.py").write_text("".join(
            f"def {name}():\n    {text!r}\n\n" for name, text in docstrings.items()))
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()
        monkeypatch.setattr(embedded, "PACKAGES", ("unimportable",))
        embedded.docstrings.cache_clear()
        return tmp_path / "unimportable" / "code.py"

    yield write
    embedded.docstrings.cache_clear()


def names(held_out):
    return [name for name in (f"function_{number}" for number in range(100))
            if embedded.Docstring(name, ()).held_out == held_out]


def test_prose_is_kept_and_the_package_is_not_imported(package):
    shown, hidden = names(False)[0], names(True)[0]
    package({shown: DOCSTRING, "copy": DOCSTRING, "short": "Too short.", hidden: DOCSTRING + "x."})
    (first, second) = embedded.docstrings()
    assert first == (shown, tuple(PROSE)) and second.name == hidden
    assert documents_of(open_source("embedded:docstrings")) == [PROSE]


def test_docstrings_are_in_the_order_of_ast_walk(package):
    path = package({})
    path.write_text(NESTED)
    walked = [(node.name, ast.get_docstring(node)) for node in ast.walk(ast.parse(NESTED))
              if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert list(embedded._docstrings(path)) == walked and len(walked) == 4


def test_pretraining_txt_has_the_documents_of_embedded_docstrings(package, tmp_path):
    package({names(False)[0]: DOCSTRING, names(False)[1]: DOCSTRING + "x.",
             names(True)[0]: "Return the sum of all elements, which are numbers. " * 3})
    with command_flags.defined(build_word_order_task.define):
        command_flags.call(build_word_order_task.main, f"--output_dir={tmp_path}")
    text, source = (list(open_source(name).documents())
                    for name in (f"{tmp_path}/pretraining.txt", "embedded:docstrings"))
    assert [(part.content.strip(), part.key) for part in text] == [
        (part.content, part.key) for part in source]
    assert len(text) == 2


def test_no_sentence_of_dev_is_in_the_pretraining_text(package):
    words = "alpha beta gamma delta epsilon zeta eta theta iota kappa".split()

    def text(number):
        own = f"Function {number} has {' '.join(words[number % 10:] + words[:number % 10])} inside."
        return f"{own} Every function shares this sentence, which has as many words as it needs."

    package({name: text(number) for number, name in enumerate(names(False) + names(True))})
    rows = build_word_order_task.rows()
    words_of = {split: {tuple(sorted(sentence.split())) for sentence, _ in rows[split]}
                for split in rows}
    assert len(rows["train"]) == len(names(False)) + 1 and len(rows["dev"]) == len(names(True))
    assert not words_of["train"] & words_of["dev"]
    originals = {sentence for number in range(100)
                 for sentence in build_word_order_task._END.split(text(number))}
    assert all((sentence in originals) == (label == "original")
               for sentence, label in rows["train"] + rows["dev"])
    assert 35 < sum(label == "swapped" for _, label in rows["train"] + rows["dev"]) < 66
