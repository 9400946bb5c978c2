"""Several sources as one: order, shares, what happens at the end of one, and pieces."""

import json
import pickle
import random

import pytest

from data_prep.documents import lines_of
from data_prep.sources import files, several
from data_prep.sources.registry import open_source
from tests.data_prep.reading import documents_of, dump, page


@pytest.fixture
def corpora(tmp_path):
    """Plain text, JSON lines with much around the text, and a dump; 2,000 documents each."""
    words = random.Random(1)

    def text(name):
        return " ".join([name] * words.randint(1, 60))

    (tmp_path / "a.txt").write_text("\n\n".join(text("plain") for _ in range(2000)))
    (tmp_path / "b.jsonl").write_text("".join(
        json.dumps({"meta": "x" * 300, "text": text("jsonl")}) + "\n" for _ in range(2000)))
    (tmp_path / "c.xml").write_bytes(dump(*(
        page(str(number), f"{{{{box|a=b}}}}\n[[wikis|{text('wikis')}]]")
        for number in range(2000))))
    return tmp_path


SHARES = {"a": 0.5, "b": 0.3, "c": 0.2}


def mixture(corpora, shares=SHARES):
    names = {"a": "a.txt", "b": "b.jsonl", "c": "c.xml"}
    kinds = {"a": "text", "b": "jsonl", "c": "wikipedia"}
    return open_source(",".join(f"{kinds[one]}:{corpora}/{names[one]}:{share}"
                                for one, share in shares.items()))


@pytest.mark.parametrize("shares", [SHARES, {"a": 1, "b": 1}, {"c": 9, "a": 1}], ids=str)
def test_a_mixture_has_the_shares_of_text_asked_for_at_any_time(corpora, shares):
    source = mixture(corpora, shares)
    found = [0] * len(shares)
    asked = [share / sum(shares.values()) for share in shares.values()]
    most = 0.0
    for number, part in enumerate(source.documents()):
        found[part.source] += sum(map(len, source.parse(part)))
        if number >= 200:
            most = max(most, *(abs(one / sum(found) - share)
                               for one, share in zip(found, asked, strict=True)))
    # All is parsed to estimate, so each is within a document of its share: 360 of 30,000 bytes.
    assert most < 360 / 20_000


def test_a_mixture_ends_with_the_first_source_that_does_and_says_so(corpora):
    source = mixture(corpora, {"a": 0.9, "b": 0.1})
    assert several.note_of(source) == ""
    found = documents_of(source)
    names = [document[0][:5] for document in found]
    assert names.count("plain") == 2000
    assert 150 < names.count("jsonl") < 300
    note = several.note_of(source)
    assert note.startswith(f"text:{corpora}/a.txt has no more documents, and the mixture ends")
    assert f"read of the others: jsonl:{corpora}/b.jsonl (" in note


def test_a_mixture_is_the_same_every_time(corpora):
    first, again = mixture(corpora), pickle.loads(pickle.dumps(mixture(corpora)))
    assert documents_of(first) == documents_of(first) == documents_of(again)
    assert first.sha256() == again.sha256() != mixture(corpora, SHARES | {"a": 0.6}).sha256()
    assert first.pieces() == (first,)


def test_pieces_in_order_have_the_documents_of_the_whole(corpora, monkeypatch):
    monkeypatch.setattr(files, "PIECE_BYTES", 1)
    (corpora / "d.txt").write_text("More.")
    source = open_source(f"jsonl:{corpora}/*.jsonl,text:{corpora}/*.txt,books:{corpora}/a.txt,"
                         f"wikipedia:{corpora}/c.xml")
    pieces = [pickle.loads(pickle.dumps(piece)) for piece in source.pieces()]
    assert len(pieces) == 5
    whole = list(source.documents())
    assert [part for piece in pieces for part in piece.documents()] == whole
    assert list(lines_of(whole, pieces[0].parse)) == list(lines_of(whole, source.parse))
