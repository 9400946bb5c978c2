"""A fraction of the documents is held out, however they are ordered and cut into files."""

import hashlib

import pytest

from data_prep.documents import DocumentPart, key_of, lines_of
from data_prep.sources.registry import open_source
from data_prep.work_units import CorpusPart, held_out_keys

TENTH = range(round(2**64 / 10))


def documents(*contents):
    return [DocumentPart(content=content.encode(), key=key_of(content.encode()))
            for content in contents]


def numbered(count):
    return documents(*(f"document {number}" for number in range(count)))


@pytest.mark.parametrize(("count", "fraction", "expected"), [
    (100, 0.1, TENTH), (300, 0.0, range(0)), (1, 0.01, range(0)), (0, 0.01, range(0))])
def test_a_fraction_of_documents_is_held_out_but_not_a_single_one(count, fraction, expected):
    assert held_out_keys(numbered(count), fraction) == expected


@pytest.mark.parametrize("copy", [
    "caf\u00e9\r\nbar", "\ufeffcaf\u00e9\nbar", "cafe\u0301\nbar", "\r\ncaf\u00e9\nbar\r\n",
    "\ufeffcafe\u0301\r\nbar\n"])
def test_a_copy_in_another_form_of_lines_and_characters_has_the_key_of_the_text(copy):
    key = int.from_bytes(hashlib.blake2b("caf\u00e9\nbar".encode(), digest_size=8).digest())
    assert key_of(copy.encode()) == key_of("caf\u00e9\nbar".encode()) == key
    assert key_of(b"caf\xe9") != key_of(b"caf\xe8")  # Latin-1, which workers refuse.


def test_keys_are_spread_evenly_and_equal_documents_are_not_held_out():
    assert 940 < sum(part.key in TENTH for part in numbered(10_000)) < 1060
    assert held_out_keys(documents("same", "same"), 0.1) == range(0)


@pytest.mark.parametrize("lengths", [(9, 2), (2, 9), (5, 1, 7), range(50, 0, -1)])
def test_of_few_documents_the_one_of_median_length_is_held_out(lengths):
    parts = documents(*("a" * length for length in lengths))
    keys = held_out_keys(parts, 0.01)
    assert [len(part.content) for part in parts if part.key in keys] == [
        sorted(lengths)[(len(lengths) - 1) // 2]]


def test_all_parts_of_a_long_document_are_in_one_split(tmp_path):
    (tmp_path / "long.txt").write_text("".join(f"line {n} {'x' * 999}\n" for n in range(4000)))
    source = open_source(str(tmp_path / "long.txt"))
    parts = list(source.documents())
    assert len({part.key for part in parts}) == 1
    assert [(part.begins, part.ends) for part in parts] == [
        (True, False), (False, False), (False, False), (False, True)]
    (unit,) = CorpusPart(source).units(1 << 24, range(2**64))
    lines = list(lines_of(unit.parts, unit.parse))
    assert (unit.split, unit.documents, len(lines)) == ("eval", 1, 4001)


def test_a_corpus_cut_into_other_files_holds_out_the_same_documents(build, tmp_path):
    contents = [f"document {'abcdefghij'[number % 10] * (number // 10 + 1)}"
                for number in range(100)]
    (tmp_path / "one.txt").write_text("\n\n".join(contents))
    for number in range(0, 100, 25):
        (tmp_path / f"part{number:02d}.txt").write_text(
            "\n\n".join(contents[number:number + 25]) + "\n")
    one, four = (build(name, text=f"{tmp_path}/{name}*.txt") for name in ("one", "part"))
    assert one.shards_of("eval") == four.shards_of("eval") != ()
