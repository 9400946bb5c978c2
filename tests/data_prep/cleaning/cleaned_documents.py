"""Cleaning without tokenization: documents in, lines that stay out."""

import collections
import pathlib
import random
import types
from unittest import mock

from data_prep.cleaning import benchmarks, plan
from data_prep.documents import DocumentPart, key_of, parse_plain_text
from data_prep.settings import CleaningSettings
from data_prep.work_units import CorpusPart, Progress
from tests.data_prep.reading import split


class ShuffledRunner:
    """Works on items in any order."""

    def __init__(self, seed=0):
        self._random = random.Random(seed)
        self.items = 0

    def run(self, corpus_parts, cut, work, kind):
        items = [item for part in corpus_parts for item in cut(part)]
        for item in self._random.sample(items, len(items)):
            self.items += 1
            yield work(item)


def parts_of(documents, part_lines):
    """Yields documents, lists of lines, in parts of so many lines."""
    for lines in documents:
        parts = [lines[begin:begin + part_lines] for begin in range(0, len(lines), part_lines)]
        key = key_of("\n".join(parts[0]).encode())
        for number, part in enumerate(parts):
            yield DocumentPart(content="\n".join(part).encode(), key=key, begins=not number,
                               ends=number == len(parts) - 1)


def cleaned(directory, documents, *, unit_bytes=10**9, part_lines=10**9, held_out=-1, runner=None,
            **settings):
    """Cleans documents; returns the lines that stay, by split and document, and the tally."""
    chosen = CleaningSettings(**settings)

    def units(_part=None):
        source = types.SimpleNamespace(documents=lambda: parts_of(documents, part_lines),
                                       parse=parse_plain_text)
        return CorpusPart(source).units(unit_bytes, range(held_out, held_out + 1))

    texts = None
    if chosen.decontaminate:
        texts = benchmarks.read(pathlib.Path(chosen.decontaminate), chosen.decontaminate_words)
    made = plan.prepare(chosen, texts, directory, [None], units,
                        runner or ShuffledRunner(), mock.create_autospec(Progress, instance=True))
    tally, kept = collections.Counter(), {"train": [], "eval": []}
    for unit in units():
        kept[unit.split] += made.clean(unit, tally)
    return {name: split(lines) for name, lines in kept.items()}, +tally

