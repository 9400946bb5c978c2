"""WikiExtractor's articles, and damage by its place."""

import bz2

import pytest

from electra_tf.platform.errors import UserError
from tests.data_prep.reading import read, read_skipping

TAGGED = ('<doc id="12" revid="3" url="https://x?curid=12" title="A &amp; "B"">\nA &amp; "B"\n\n'
          'It is &lt;b&gt;.\nTwo.\n\n</doc>\n'
          '<doc id="13" url="https://x" title="C">\nC\n\nThree.\n</doc>\n')
LINES = [["It is <b>.", "Two."], ["Three."]]


@pytest.mark.parametrize("content", [TAGGED, "\n\n" + TAGGED, "\ufeff" + TAGGED])
def test_articles_are_documents_without_their_titles(tmp_path, content):
    (tmp_path / "wiki_00").write_text(content)
    assert read(f"wikiextractor:{tmp_path}/wiki_*") == LINES
    assert read(f"wikiextractor:{tmp_path}/wiki_*", headings=True) == [
        ['A & "B"', *LINES[0]], ["C", *LINES[1]]]


def test_its_directory_is_read_whole(tmp_path):
    for name in ("AA", "AB"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "wiki_00").write_text(TAGGED)
    (tmp_path / "AB" / "wiki_01.bz2").write_bytes(bz2.compress(TAGGED.encode()))
    (tmp_path / "log.txt").write_text("not this")
    assert read(f"wikiextractor:{tmp_path}") == LINES * 3


def test_json_lines_belong_to_another_source(tmp_path):
    (tmp_path / "wiki_00").write_text('{"text": "Two."}\n')
    with pytest.raises(UserError, match="wiki_00 holds JSON lines; name it jsonl:.*wiki_00"):
        read(f"wikiextractor:{tmp_path}")


@pytest.mark.parametrize(("old", "new", "message", "left"), [
    ("Two.\n\n</doc>\n", "Two.\n", "the article at byte 0 has no end", [1]),
    ("Three.\n</doc>\n", "Three.\n", "the article at byte 120 has no end", [0]),
    ("</doc>\n<doc", "</doc>\nstray\n<doc", "the line at byte 120 is not in a", [0, 1]),
    ('Two.\n', "Two \xff.\n", "wiki_00 is not UTF-8: bad byte 0xff at offset 109", [1]),
])
def test_damage_is_one_article_and_its_place(tmp_path, old, new, message, left):
    assert old in TAGGED
    content = TAGGED.replace(old, new, 1).encode("latin-1")
    (tmp_path / "wiki_00").write_bytes(content)
    found, (told,) = read_skipping(f"wikiextractor:{tmp_path}/*")
    assert found == [LINES[number] for number in left]
    assert message.split("byte ")[0] in told
    if "120" in message:
        assert f"byte {TAGGED.index('</doc>') + 7}" in told
