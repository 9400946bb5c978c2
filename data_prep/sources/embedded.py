"""Reads English text of installed packages: Python's documentation, and libraries' docstrings."""
# ruff: noqa: D102 - `Source` describes the methods of all sources.

import ast
import dataclasses
import functools
import hashlib
import importlib.util
import pathlib
import pydoc_data.topics
import re
import sys
import textwrap
import typing
import warnings
from collections.abc import Iterator

from data_prep.documents import DocumentPart, Parser, key_of, parse_plain_text
from data_prep.sources.source import Source
from electra_tf.core.settings import require_one_of

PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib", "tensorflow", "tf_keras")
"""Libraries whose docstrings are read, in this order; all are requirements of this project."""
MODULES = """
    abc argparse ast asyncio base64 bdb bisect bz2 calendar cmd code codecs collections
    concurrent configparser contextlib copy csv ctypes dataclasses datetime decimal difflib dis
    doctest email enum filecmp fileinput fnmatch fractions ftplib functools getopt getpass
    gettext glob graphlib gzip hashlib heapq hmac html http imaplib importlib inspect ipaddress
    json linecache locale logging lzma mailbox mimetypes multiprocessing netrc numbers operator
    optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posixpath pprint
    profile pstats py_compile pyclbr pydoc queue quopri random reprlib rlcompleter runpy sched
    secrets selectors shelve shlex shutil smtplib socket socketserver sqlite3 ssl stat
    statistics string stringprep subprocess symtable sysconfig tabnanny tarfile tempfile
    textwrap threading timeit tokenize trace traceback tracemalloc turtle types typing unittest
    urllib uuid venv wave warnings weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zoneinfo
""".split()
"""Modules of the standard library whose docstrings are read, in this order."""
_CODE = re.compile(r"::=|>>>|\.\.\.|^[ \t]{4,}\S|\w\(\w*\)\s*->|[{}=<>|]{2}")
_UNDERLINED = re.compile(r"^\s*([*=~^-])\1{3,}\s*$", re.MULTILINE)
_MARKUP = re.compile(r"[*`]+")  # Emphasis, code and bullets of reStructuredText.
_MIN_CHARACTERS = 50  # Characters; a shorter paragraph is a heading, a signature or code.
_WORDS = re.compile(r"[A-Za-z]+[,.;:]?(?=\s|$)")
_MAX_ODD, _MAX_ODD_IN_DOCSTRINGS = 0.35, 0.2
"""Largest fraction of words with other characters than letters in a paragraph of prose."""
_MIN_DOCSTRING_CHARACTERS = 100  # Characters of prose.
_HIDDEN = re.compile(r"(:[a-z]+)+:(?=`)|(?<=`)[~.]+| *\[\w+\]_|(?<=\])\([a-z]+://[^)\s]*\)")
"""Parts of a docstring that its rendered page hides: roles, references, addresses of links."""
_LISTED = re.compile(r"\s*(\.\. |[A-Z][\w ]*:\n|[-*\d@:]|[\w*., ]+ : )|.*(\\|://)", re.DOTALL)
"""A directive, "Args:" with what follows, a parameter, an item of a list; a formula or a link."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Attributes of syntax nodes that contain statements, in the order of the nodes' fields."""
_TESTS = frozenset({"test", "tests", "testing"})
_COPY = "tensorflow/python/keras/"  # Directory of TensorFlow's copy of an old tf_keras.


@dataclasses.dataclass
class EmbeddedText(Source):
    """A source of one of the `TEXTS`."""

    name: str
    parse: Parser = parse_plain_text

    def __post_init__(self):
        require_one_of(TEXTS, "--input=embedded", self.name)
        self._texts = ["\n".join(lines).encode() for lines in TEXTS[self.name]()]
        self.size = sum(map(len, self._texts))
        self._read = 0

    def documents(self) -> Iterator[DocumentPart]:
        self._read = 0
        for text in self._texts:
            self._read += len(text)
            yield DocumentPart(content=text, key=key_of(text), path=f"embedded:{self.name}")

    def position(self) -> int:
        return self._read

    def sha256(self) -> str:
        return hashlib.sha256(b"\n\n".join(self._texts)).hexdigest()


@functools.cache
def documents() -> tuple[list[str], ...]:
    """Returns Python's help topics, then modules' docstrings, as lists of one-line paragraphs.

    The text has about a million characters and depends on the Python version.
    """
    topics = [_paragraphs(text) for _, text in sorted(pydoc_data.topics.topics.items())]
    modules = [[line for path in _source_files(name) for _, text in _docstrings(path)
                for line in _paragraphs(text)] for name in MODULES]
    return tuple(filter(None, topics + modules))


class Docstring(typing.NamedTuple):
    """The prose of a docstring."""

    name: str  # Name of the class or function; "" for a file's own.
    paragraphs: tuple[str, ...]

    @property
    def held_out(self) -> bool:
        """Returns True for a tenth of all names; dev.tsv of `build_word_order_task` has these."""
        return key_of(self.name.encode()) % 10 == 0


@functools.cache
def docstrings() -> tuple[Docstring, ...]:
    """Returns the docstrings of `PACKAGES` with prose, each text once.

    They have about 3 million characters and depend on the packages' versions. Parsing the files,
    which are not imported, takes 10 s on a core with AVX-512.
    """
    # The first docstring of each text.
    by_prose: dict[tuple[str, ...], Docstring] = {}
    for package in PACKAGES:
        print(f"reading the docstrings of {package} ...", file=sys.stderr)
        for path in _source_files(package):
            for name, text in _docstrings(path):
                prose = tuple(_paragraphs(_HIDDEN.sub("", text), sentences_only=True))
                if sum(map(len, prose)) >= _MIN_DOCSTRING_CHARACTERS:
                    by_prose.setdefault(prose, Docstring(name, prose))
    return tuple(by_prose.values())


TEXTS = {"python": documents,
         "docstrings": lambda: [text.paragraphs for text in docstrings() if not text.held_out]}
"""Name -> a function that returns documents as lists of paragraphs."""


def _paragraphs(text: str, sentences_only: bool = False) -> list[str]:
    """Returns paragraphs of prose; `sentences_only` drops lists, links and formulas."""
    # Blocks between blank lines; code, headings, tables and signatures have few plain words.
    paragraphs = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(text.expandtabs())):
        words = [word.strip("\"'()*`") for word in block.split()]
        odd = 1 - sum(bool(_WORDS.fullmatch(word)) for word in words) / max(1, len(words))
        if (len(block.strip()) < _MIN_CHARACTERS or _UNDERLINED.search(block) or odd > _MAX_ODD
                or _CODE.search(textwrap.dedent(block))):
            continue
        if not sentences_only or (
                block.rstrip().endswith((".", "!", "?")) and not _LISTED.match(block)
                and odd <= _MAX_ODD_IN_DOCSTRINGS):
            paragraphs.append(" ".join(_MARKUP.sub("", block).split()))
    return paragraphs


def _docstrings(path: pathlib.Path) -> Iterator[tuple[str, str]]:
    """Yields name and text of every docstring of a file without importing it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Newer versions of Python warn of escapes in strings.
        tree = ast.parse(path.read_text(encoding="utf-8"))
    # Breadth first, as `ast.walk`, but without expressions, which hold no docstrings.
    level: list[ast.AST] = [tree]
    while level:
        for node in level:
            if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node)):
                yield getattr(node, "name", ""), text
        level = [below for node in level for block in _BLOCKS for below in getattr(node, block, ())]


def _source_files(module: str) -> list[pathlib.Path]:
    # The module's file, or all files of a package but tests.
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return []
    origin = pathlib.Path(spec.origin)
    if origin.name != "__init__.py":
        return [origin]
    return sorted(path for path in origin.parent.rglob("*.py")
                  if _TESTS.isdisjoint(path.parts[-2:]) and _COPY not in path.as_posix())
