"""Reads sources as lists of lines, and writes texts and dumps."""

import html
import random
import string

from data_prep.documents import DOCUMENT_END, ReadingNotes, lines_of
from data_prep.sources.registry import open_source
from data_prep.sources.source import SourceOptions


def read(text, **options):
    """Returns the documents of --input as lists of lines; stops at damage."""
    return documents_of(open_source(str(text), SourceOptions(**options)))


def documents_of(source, notes=None):
    return split(lines_of(source.documents(), source.parse, notes))


def split(lines):
    """Returns the lines of each document."""
    documents = [[]]
    for line in lines:
        if line == DOCUMENT_END:
            documents.append([])
        else:
            documents[-1].append(line)
    return documents if documents[-1] else documents[:-1]


def read_skipping(text, **options):
    """Returns the whole documents, and the messages of what was skipped."""
    notes = ReadingNotes()
    source = open_source(str(text), SourceOptions(on_error="skip", **options))
    documents = documents_of(source, notes)
    assert notes.skipped == len(notes.messages) or notes.skipped > 20
    return [document for document in documents if document], notes.messages


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


HEADER = ('<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11">\n'
          '<siteinfo><namespaces><namespace key="6" case="first-letter">Datei</namespace>'
          '</namespaces></siteinfo>\n')
FOOTER = "</mediawiki>\n"


def page(title, text, namespace=0, redirect=False):
    return (f"  <page>\n    <title>{html.escape(title)}</title>\n    <ns>{namespace}</ns>\n"
            f"    <id>1</id>\n" + '    <redirect title="X" />\n' * redirect +
            f'    <revision><id>2</id><text bytes="9" xml:space="preserve">'
            f"{html.escape(text, quote=False)}</text></revision>\n  </page>\n")


def dump(*pages):
    return (HEADER + "".join(pages) + FOOTER).encode()


def make_text(documents: int, seed: int = 0) -> str:
    """Returns documents of 1 to 8 lines of 1 to 60 words of 1 to 6 letters."""
    generator = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(
            "".join(generator.choices(string.ascii_lowercase, k=generator.randint(1, 6)))
            for _ in range(count))

    return "\n\n".join(
        "\n".join(words(generator.randint(1, 60)) for _ in range(generator.randint(1, 8)))
        for _ in range(documents)) + "\n"
