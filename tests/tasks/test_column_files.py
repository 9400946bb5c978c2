"""Sentences of column files have the words and tags that people mean, or the file is refused."""

import re

import pytest

from electra_tf.tasks.column_files import read_columns
from tests.support.refusals import refused
from tests.support.text_files import write

CONLLU = ("# sent_id = 1\n# text = Du bist .\n1-2\tDubist\t_\t_\t_\t_\t_\t_\t_\t_\n"
          "1\tDu\tdu\tPRON\tP\t_\t2\tnsubj\t_\t_\n2\tbist\tsein\tAUX\tA\t_\t0\troot\t_\t_\n"
          "2.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\tSpaceAfter=No\n\n")
GERMEVAL = ("#\thttp://x [2009]\n1\tIn\tO\tO\n2\tNew York\tB-LOC\tO\n\n"
            "#\thttp://y [2]\n1\tEr\tO\tO\n")


def read(tmp_path, text, *columns, **options):
    """Returns the sentences as "word/tag ..." and the note."""
    notes = []
    sentences = read_columns(write(tmp_path / "a.txt", text), *columns, notes=notes, **options)
    return [" ".join(map("/".join, zip(example.words, example.tags or example.words, strict=True)))
            for example in sentences], *notes


@pytest.mark.parametrize(("text", "columns", "sentences", "note"), [
    ("New York\tB-L\nist\tO\n\n10\xa0000\tB-N\n", (), ["New York/B-L ist/O", "10\xa0000/B-N"],
     "2 columns separated by tabs, words in column 1, tags in column 2"),
    ("10\xa0000 NUM\n", (), ["10\xa0000/NUM"], "separated by spaces"),
    ("EU NNP O\nrejects VBZ\tO\n", (), ["EU/O rejects/O"], "3 columns separated by spaces"),
    ("a\t\tO\nb\tX\tO\n", (), ["a/O b/O"], "separated by tabs"),
    ("a\u2028b\x85c O\n\x0c \n", (), ["a\u2028b\x85c/O"], None),
    ("# id a domain=en\nhis _ _ O\n\n# id b domain=en\nson _ _ B-P\n", (), ["his/O", "son/B-P"],
     "2 comment lines left out"),
    ("# O\n#1 O\nGood O\n# O\n\n# O\n", (), ["#/O #1/O Good/O #/O", "#/O"], None),
    ("Go O\n# B-NUM\n1 O\n", (), ["Go/O #/B-NUM 1/O"], None),
    ("#begin document (x); part 000\na O\n\n#end document\n", (), ["a/O"], "2 comment lines"),
    ("###MEDLINE:95369245\n\nIL-2 B-DNA\n", (), ["IL-2/B-DNA"], "1 comment lines"),
    # Quotes as pandas writes them, and words of quotes.
    ('EU\tO\n""""\tO\n"6"" pipe"\tB-X\n', (), ['EU/O "/O 6" pipe/B-X'], "; 2 pairs of quotes"),
    ('"EU" "O"\n"ran" "B-X"\n', (), ["EU/O ran/B-X"], "; 4 pairs of quotes around cells left"),
    ('"\tO\nEU\tO\n"\tO\n', (), ['"/O EU/O "/O'], "tags in column 2"),
    ('""\tO\n``\tO\n', (), ['""/O ``/O'], "tags in column 2"),
    ("Token\tPOS\tNER\nEU\tNNP\tB-ORG\n", (), ["EU/B-ORG"], "1 header left out"),
    ("Token\tPOS\tNER\nEU\tNNP\tB-ORG\n", ("Token", "POS"), ["EU/NNP"], "tags in column 2"),
    ("EU NNP B-ORG\n", ("1", "2"), ["EU/NNP"], "words in column 1, tags in column 2"),
    ("O\tfine\nB-X\tfood\n", ("2", "1"), ["fine/O food/B-X"], "words in column 2"),
    ("# global.columns = ID FORM TAG\n1\ta\tO\n2\tb\tB-X\n", ("FORM", "TAG"), ["a/O b/B-X"], None),
    (CONLLU, ("2", "4"), ["Du/PRON bist/AUX ./PUNCT"],
     "2 comment lines left out; 2 ranges and empty nodes left out"),
    (CONLLU, ("FORM", "UPOS"), ["Du/PRON bist/AUX ./PUNCT"], "tags in column 4"),
    (GERMEVAL, ("2", "3"), ["In/O New York/B-LOC", "Er/O"], "2 comment lines left out")])
def test_words_and_tags(tmp_path, text, columns, sentences, note):
    read_sentences, note_read = read(tmp_path, text, *columns)
    assert read_sentences == sentences
    assert (note or "") in note_read


def numbered(filled=True, header="Sentence #\tWord\tPOS\tTag\n", form="Sentence: {}"):
    """Returns a table of sentences of 2, 3 and 1 words without empty lines between them."""
    words = iter("abcdef")
    return header + "".join(
        f"{form.format(number) if filled or not place else ''}\t{next(words)}\tNN\tB-x\n"
        for number, size in ((3, 2), (11, 3), (12, 1)) for place in range(size))


SPLIT = ["a/B-x b/B-x", "c/B-x d/B-x e/B-x", "f/B-x"]
INDEXED = "".join(f"{place}\t{line}" if place >= 0 else f"\t{line}" for place, line in enumerate(
    numbered().splitlines(keepends=True), start=-1))


@pytest.mark.parametrize(("text", "columns"), [
    (numbered(), ()), (numbered(filled=False), ("Word", "Tag")), (INDEXED, ()),
    (f"\ufeff{numbered()}".replace("\n", "\r\n"), ()),
    (numbered(header="", form="{}"), ("2", "4")), (numbered(header=""), ("2", "4")),
    (numbered(header="sentence_id\ttoken\tpos\tner\n", form="{:x}-z"), ()),
    (numbered().replace("11", "2"), ()), (numbered(header="n\tword\tpos\tner\n", form="{}"), ())])
def test_a_column_of_numbers_divides_sentences_without_empty_lines(tmp_path, text, columns):
    sentences, note = read(tmp_path, text, *columns)
    assert (sentences, "numbers of sentences in column" in note) == (SPLIT, True)


@pytest.mark.parametrize(("text", "columns"), [
    ("n\tword\ttag\n1\ta\tO\n2\tb\tO\n3\tc\tO\n", ("word", "tag")),  # Numbers of words.
    ("d\tn\tword\ttag\n1\t1\ta\tO\n1\t1\tb\tO\n2\t2\tc\tO\n2\t2\td\tO\n", ()),  # Two columns.
    ("7 a O\n7 b O\n5 c O\n5 d O\n", ("2", "3")), ("x1 a O\nx1 b O\nx1 c O\n", ("2", "3")),
    ("1 a O\n1 b O\n2 c O\n1 d O\n", ("2", "3"))])
def test_other_columns_do_not_divide_a_sentence(tmp_path, text, columns):
    ((_,), note) = read(tmp_path, text, *columns)
    assert "numbers of sentences" not in note


@pytest.mark.parametrize("text", ["EU\tO\n\tran\tO\n", "\tEU\tO\n\tran\tO\n", "\tEU\tO\nran\tO\n"])
def test_tabs_around_complete_rows_are_no_cells(tmp_path, text):
    assert read(tmp_path, text)[0] == ["EU/O ran/O"]


@pytest.mark.parametrize(("text", "columns", "message"), [
    (numbered(header=""), (), "--text_columns=2 --label_column=4"),
    (numbered(header="", filled=False), (), ":2: the word .* empty; --text_columns"),
    (CONLLU, (), "--text_columns=2 --label_column=4"),
    (GERMEVAL, (), "--text_columns=2 --label_column=3"),
    ("O\tfine\nB-X\tfood\n", (), "--text_columns=2 --label_column=1"),
    ("".join(f"w O 0.{number}\nv B-X 1\n" for number in range(60)), (),
     "column 3 does not look like tags; .*--text_columns=1 --label_column=2"),
    ("EU NNP B-ORG\n", ("1", "7"), "--label_column=7: .* 3 columns"),
    ("Token\tNER\nEU\tO\n", ("Token", "POS"), "=POS: .* 2 columns, named Token, NER"),
    ("EU\tO\nNew York\tO\nbad line\n", (), r"a\.txt:3: 1 columns, but 2"),
    ("a\t \tb\n", ("1", "2"), r"a\.txt:1: .* empty"), ("# x\n\n", (), "no sentences")])
def test_other_layouts_are_refused_with_the_flags_that_read_them(tmp_path, text, columns, message):
    with refused(message) as error:
        read(tmp_path, text, *columns)
    flags = dict(re.findall("--(text|label)_column[s]?=([0-9])", str(error.value)))
    if len(flags) == 2:
        read(tmp_path, text, flags["text"], flags["label"])


def test_a_column_may_have_the_keys_of_sentences(tmp_path):
    path = write(tmp_path / "a.txt", "id\tword\ttag\nx7\tEU\tB-ORG\nx7\tran\tO\n\nx8\tHe\tO\n")
    for keys in ("id", "1"):
        assert [example.key for example in read_columns(path, "word", "tag", keys)] == ["x7", "x8"]
    with refused("--key_column=key: .* 3 columns, named id, word, tag; --key_column=1 selects"):
        read_columns(path, "word", "tag", "key")


def test_words_to_tag_need_no_tags(tmp_path):
    for text, column, words in (("#\n#tag\n# x\n", "text", "# #tag"), (CONLLU, "2", "Du bist ."),
                                ("He\nruns\n", "2", "He runs")):
        ((sentence,), *_) = read(tmp_path, text, column, tagged=False)
        assert sentence == " ".join(f"{word}/{word}" for word in words.split())
    (sentence,), _ = read(tmp_path, "He PRP O\n", "1", "3", tagged=False)
    assert sentence == "He/O"
