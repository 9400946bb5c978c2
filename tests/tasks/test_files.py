"""The user's own tables, sentences and label sets: read whole, or refused by their line."""

import contextlib
import csv
import json
import re

import pytest

from electra_tf.tasks import files, registry
from electra_tf.tasks.files import Files, read_tagged
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, QuestionExample, TaggedExample, TaskSpec, TextExample
from tests.support.refusals import refused
from tests.support.text_files import write


def spec(kind="classification", **fields):
    return TaskSpec(name=kind, kind=kind, metrics=("accuracy",), **fields)


def read_texts(*arguments, **options):
    return list(files.read_texts(*arguments, **options))


NUMBERS = spec("regression")
TAGGED = spec("tagging", text_columns=("words",), label_column="tags", labels=("B-org", "O"))


def test_columns_are_picked_by_name(tmp_path):
    path = write(tmp_path / "a.csv", 'id,title,body,y\n7,"A, b",c,pos\n8,d,e,neg\n')
    columns = spec(text_columns=("title", "body"), label_column="y", key_column="id")
    assert read_texts(path, columns) == [
        TextExample(key="7", texts=("A, b", "c"), label="pos"),
        TextExample(key="8", texts=("d", "e"), label="neg")]
    bare = write(tmp_path / "b.csv", "id,title,body\n7,a,c\n")
    assert read_texts(bare, columns, labelled=False)[0].label is None
    with refused("--text_columns takes"):
        spec(text_columns=("a", "b", "c"))


def test_columns_without_names_are_not_read(tmp_path):
    """The table of SMS spam on Kaggle has three."""
    path = write(tmp_path / "spam.csv", "v1,v2,,,\nham,Go.,,,\nspam,Free!,,,\n")
    assert [(example.texts, example.label) for example in read_texts(
        path, spec(text_columns=("v2",), label_column="v1"))] == [
            (("Go.",), "ham"), (("Free!",), "spam")]


def test_a_row_to_predict_is_read_when_it_is_asked_for(tmp_path):
    rows = KINDS[spec().kind].read_file(
        write(tmp_path / "a.tsv", "text\none\ntwo\nbro\tken,row\n"), spec(), labelled=False)
    assert [next(rows).texts, next(rows).texts] == [("one",), ("two",)]
    with refused(":4: 2 columns"):
        next(rows)


def test_lines_of_plain_text_are_examples_to_predict(tmp_path):
    path = write(tmp_path / "a.txt", "one\ttext\n\nlast")
    examples = read_texts(path, spec(key_column="id"), labelled=False)
    assert [(example.key, example.texts, example.label) for example in examples] == [
        ("1", ("one\ttext",), None), ("2", ("",), None), ("3", ("last",), None)]
    two = spec(text_columns=("x", "y"))
    pairs = write(tmp_path / "b.txt", "a\tb\tc\n")
    assert read_texts(pairs, two, labelled=False)[0].texts == ("a", "b\tc")
    with refused(r"a\.txt:1: 1 columns, but 2"):
        read_texts(write(tmp_path / "a.txt", "alone\n"), two, labelled=False)
    with refused(r"a\.txt: .* no labels"):
        read_texts(path, spec())


def test_labels_of_a_file_to_predict_are_read_if_they_are_there(tmp_path):
    path = write(tmp_path / "a.tsv", "text\tlabel\nx\t1.5\ny\t\nz\tbig\n")
    for task, expected in ((NUMBERS, [1.5, None, None]),
                           (spec(labels=("1.5", "2")), ["1.5", None, None])):
        notes = []
        examples = KINDS[task.kind].read([path], task, labelled=False, notes=notes)
        assert [example.label for example in examples] == expected
        assert notes == [f"{path}: 1 of 3 rows have a label that the task lacks, which is left out"
                         ] * bool(task.labels)


def test_several_files_are_one_whose_keys_name_them(tmp_path):
    paths = [write(tmp_path / name, f"text\tlabel\n{name}\tyes\nx\tno\n")
             for name in ("a.tsv", "b.tsv")]
    task = registry.load("classification", None, Files(train=paths, dev=paths[:1]))
    assert [(example.key, example.texts) for example in task.train] == [
        (f"{tmp_path}/a.tsv:2", ("a.tsv",)), (f"{tmp_path}/a.tsv:3", ("x",)),
        (f"{tmp_path}/b.tsv:2", ("b.tsv",)), (f"{tmp_path}/b.tsv:3", ("x",))]
    with refused(r"a\.tsv, .*a\.tsv: a file is named twice"):
        registry.load("classification", None, Files(train=[*paths, paths[0]], dev=paths))


def test_rows_with_one_key_are_kept_and_counted(tmp_path):
    rows = [{"id": "1", "text": ["x"]}, {"id": 1, "text": ["y"]}, {"id": "2", "text": ["z"]}]
    for kind, text in (("classification", str), ("tagging", list)):
        path, notes = write(tmp_path / "a.jsonl", "".join(
            json.dumps(row | {"text": text(row["text"])}) + "\n" for row in rows)), []
        examples = list(KINDS[kind].read_file(
            path, spec(kind, key_column="id"), labelled=False, notes=notes))
        assert [example.key for example in examples] == ["1", "1", "2"]
        assert "1 of 3 rows have the key of an earlier row" in " ".join(notes)
        assert not any("key" in note for note in notes_of(path, spec(kind)))


def notes_of(path, task):
    notes = []
    list(KINDS[task.kind].read_file(path, task, labelled=False, notes=notes))
    return notes


def test_labels_that_join_others_are_refused(tmp_path):
    user_files = Files(train=[tmp_path / "a.tsv"], dev=[tmp_path / "a.tsv"])
    for joint in ("art|", "Paris, TX", "sports,art"):
        write(tmp_path / "a.tsv", f"text\tlabel\nx\tsports\ny\t{joint}\nz\tTexas\n")
        with refused(r"a\.tsv: .*'sports,art'") if "s,a" in joint else contextlib.nullcontext():
            assert joint in registry.load("classification", None, user_files).spec.labels


def test_held_out_examples_are_a_tenth_of_every_label_or_range():
    examples = [TextExample(key=str(number), texts=(str(number),), label="abcc"[number % 4])
                for number in range(400)]
    train, dev, note = files.hold_out(examples)
    assert sorted(train + dev, key=lambda example: int(example.key)) == examples
    for label, count in (("a", 100), ("b", 100), ("c", 200)):
        assert abs(sum(example.label == label for example in dev) - count / 10) <= 1
    keys = [int(example.key) for example in dev]
    assert keys == sorted(keys) and files.hold_out(examples)[1] == dev and "40 of 400" in note
    numbers = [TextExample(key=str(number), texts=(f"text {number}",), label=float(number))
               for number in range(100)]
    assert [int(example.label) // 10 for example in files.hold_out(numbers)[1]] == list(range(10))


def test_held_out_examples_share_no_text_and_no_context_with_training():
    texts = [TextExample(key=str(number), texts=(str(number // 4),), label="ab"[number % 2])
             for number in range(80)]
    questions = [QuestionExample(key=str(number), question=f"q{number}", context=f"c{number // 5}")
                 for number in range(100)]
    for examples, source in ((texts, "texts"), (questions, "context")):
        train, dev = ({getattr(example, source) for example in part}
                      for part in files.hold_out(examples)[:2])
        assert dev and not train & dev
    first, other = texts[0], texts[4]
    assert len(files.hold_out([first, other])[1]) == 1
    with refused("--dev is needed"):
        files.hold_out([first, first])


@pytest.mark.parametrize(("text", "is_read"), [
    ("EU rejects German call\n", False), ("I like cats\nYou like dogs\n", False),
    ("EU\nrejects\n", True), ("EU NNP\nrejects VBZ\n. .\n", True),
    ("EU B-org\nrejects O\ncall B-org\n", True)])
def test_plain_sentences_to_tag_are_told_from_columns(tmp_path, text, is_read):
    path = write(tmp_path / "a.txt", text)
    with contextlib.nullcontext() if is_read else refused(r"a\.txt: lines of several words"):
        assert read_tagged(path, TAGGED, labelled=False)[0].words[0] == "EU"


def test_tags_of_spans_become_iob2_and_the_note_says_how_many(tmp_path):
    notes = []
    path = write(tmp_path / "a.txt", "Kim\tPER-B\nsan\tPER-I\nran\tO\n")
    (example,) = read_tagged(path, spec("tagging"), notes=notes)
    assert example.tags == ("B-PER", "I-PER", "O")
    assert "tags in IOB, the letter last; 2 of 3 rewritten as IOB2" in notes[0]
    assert read_tagged(write(tmp_path / "a.csv", path.read_text()), spec("tagging")) == [example]
    lines = write(tmp_path / "a.jsonl", '{"text": ["a", "b", "c"], "label": ["U-X", "U-X", "O"]}\n')
    model = spec("tagging", labels=("U-X", "O"))  # A converted model may have another scheme.
    for task, tags in ((spec("tagging"), ("B-X", "B-X", "O")), (model, ("U-X", "U-X", "O"))):
        assert read_tagged(lines, task)[0].tags == tags
    for labels, written in (("I-X O", "I-X B-X O"), ("X-B X-I O", "X-B X-B O")):
        task = spec("tagging", labels=tuple(labels.split()))
        assert read_tagged(lines, task)[0].tags == tuple(written.split())
    for name, text, message in (("a.txt", "a B-X\nb 0\nc I-X\n", r"a\.txt:1: the tag '0'"),
                                ("a.txt", "a (X*\nb *)\n", "CoNLL-2005"),
                                ("a.csv", "a,O\n", r"a\.csv: .*columns")):
        with refused(message):
            read_tagged(write(tmp_path / name, text), spec("tagging"))


def test_json_keys_and_labels_may_be_numbers_or_truths(tmp_path):
    path = write(tmp_path / "a.jsonl", "".join(
        json.dumps({"id": 51870, "text": "x", "label": label}) + "\n" for label in (1, True, "a")))
    examples = read_texts(path, spec(key_column="id"))
    assert [(example.key, example.label) for example in examples] == [
        ("51870", "1"), ("51870", "True"), ("51870", "a")]
    path = write(tmp_path / "a.jsonl", '{"text": "x", "label": 2}\n{"text": "y", "label": "-1e2"}')
    assert [example.label for example in read_texts(path, NUMBERS)] == [2.0, -100.0]


def test_tagged_sentences_of_json_lines(tmp_path):
    path = write(tmp_path / "a.jsonl", json.dumps({"words": ["EU", "rejects"],
                                                  "tags": ["I-ORG", "O"]}))
    assert read_tagged(path, TAGGED) == [
        TaggedExample(key="1", words=("EU", "rejects"), tags=("B-ORG", "O"))]
    assert read_tagged(path, TAGGED, labelled=False) == read_tagged(path, TAGGED)
    (bare,) = read_tagged(write(tmp_path / "a.jsonl", '{"words": ["EU"]}'), TAGGED, labelled=False)
    assert (bare.words, bare.tags) == (("EU",), None)
    for record, message in (
            ({"words": ["a", "b"], "tags": ["O"]}, r"a\.jsonl:1: 2 words and 1 tags"),
            ({"words": ["a"]}, r"'tags'.* Received the keys: words\."),
            ({"words": ["a"], "tags": [3]}, r"Received: \[3\].*features\['tags'\].*int2str"),
            ({"words": ["a"], "tags": None}, "'tags' must be .* Received: None")):
        path.write_text(json.dumps(record))
        with refused(message):
            read_tagged(path, TAGGED)


SENTENCES = [{"tokens": ["EU", "rejects"], "ner_tags": ["B-org", "O"]},
             {"tokens": ["call"], "ner_tags": ["O"]}]
LINES = "".join(f"{json.dumps(row)}\n" for row in SENTENCES)


@pytest.mark.parametrize(("name", "content"), [
    *((name, LINES) for name in ("a.json", "a.txt", "a.csv", "a")),
    ("a.json", f"\ufeff\n{LINES}"), ("a.json", LINES.replace("\n", "\r\n\r\n")),
    ("a.json", json.dumps(SENTENCES)), ("a.txt", json.dumps(SENTENCES, indent=2))])
def test_json_is_read_under_any_name(tmp_path, name, content):
    columns = spec("tagging", text_columns=("tokens",), label_column="ner_tags")
    examples = read_tagged(write(tmp_path / name, content), columns)
    assert [(list(example.words), list(example.tags)) for example in examples] == [
        (row["tokens"], row["ner_tags"]) for row in SENTENCES]


def test_words_that_all_begin_alike_are_noted(tmp_path):
    for first, count in (("pt:", 1), ("", 0)):
        notes = []
        words = write(tmp_path / "a.txt", "".join(
            f"{first}{word}\tB-X\n" for word in "a an b be c d e f g h i".split()))
        read_tagged(words, spec("tagging"), notes=notes)
        assert notes[0].count("every word begins with 'pt:'") == count


LABEL_STUDIO = [{"id": 1, "data": {"text": "Al Bo"}, "annotations": [{"result": [
    {"value": {"start": 0, "end": 5, "labels": ["PER"]}}]}]}]


@pytest.mark.parametrize(("name", "content", "message"), [
    ("a.json", json.dumps(LABEL_STUDIO), "Label Studio.* CoNLL2003"),
    ("a.jsonl", '{"text": "Al Bo", "label": [[0, 5, "PER"]]}', "doccano"),
    ("a.json", '{"text": "Al", "tokens": [{"text": "Al"}], "spans": []}', "JSON of .*Prodigy"),
    ("a.ann", "T1\tPER 0 5\tAl Bo\nT2\tPER 7 9\tCy\n", "BRAT"),
    ("a.conll", "#begin document (nw/x); part 000\nnw/x   0   0   Al   NNP   (TOP*   -   *   -\n"
     "nw/x   0   1   ran   VBD   *)   -   -   *   -\n\n#end document\n", "CoNLL-2012.*grep"),
    ("a.txt", 'Sentence #,Word,Tag\nSentence: 1,Al,B-PER\nSentence: 1,",",O\n', "commas"),
    ("a.csv", "Al\tB-PER\nBo,O\n", "commas")])
def test_other_formats_of_tags_are_named(tmp_path, name, content, message):
    path = write(tmp_path / name, content)
    for labelled in (True, False):
        with refused(message):
            read_tagged(path, spec("tagging"), labelled=labelled)


@pytest.mark.parametrize("content", [
    "[ ( O\nEU NNP B-org\n", "{ O\n\" O\n", '[ "" O\nEU x O\n', "<html> O\nEU B-org\n",
    ", O\n,, O\n", "der ART,Nom\nHund N,Nom\n", "T1 NN O\n0 CD O\n"])
def test_words_that_look_like_another_format_are_words(tmp_path, content):
    (example,) = read_tagged(write(tmp_path / "a.txt", content), spec("tagging"))
    assert example.words == tuple(line.split()[0] for line in content.splitlines())


ROWS = [("x", "a"), ("y", "b")]


@pytest.mark.parametrize(("name", "text", "rows", "note"), [
    # Columns are separated by what most lines have, and selected by name or number.
    ("a.csv", "\ufefftext;label\r\n\"a;b\";x\r\n\r\nc, d;y\r\n", [("a;b", "x"), ("c, d", "y")],
     "semicolons separate"),
    ("a.csv", "text\tlabel\na, b\tx\n", [("a, b", "x")], "tabs separate"),
    ("a.jsonl", '{"text": "a", "label": 1.5}\n \n{"text": "b", "label": 2}\n',
     [("a", "1.5"), ("b", "2")], None),
    # Quotes of a TSV are removed if all enclose cells.
    ("a.tsv", 'text\tlabel\n"He said ""no"""\tb\n"Fine, thanks"\ta\n',
     [('He said "no"', "b"), ("Fine, thanks", "a")], "removed"),
    ("a.tsv", 'text\tlabel\n"A\nB"\tb\nplain\ta\n', [("A\nB", "b"), ("plain", "a")], "removed"),
    ("a.tsv", 'text\tlabel\n"A\tB"\tb\nplain\ta\n', [("A\tB", "b"), ("plain", "a")], "removed"),
    ("a.tsv", 'text\tlabel\n"a b"\t"x"\n"c"\t"y"\n', [("a b", "x"), ("c", "y")], "removed"),
    ("a.tsv", 'text\tlabel\n"a b"\tx\n"c"\ty\n', [("a b", "x"), ("c", "y")], "removed"),
    *(("a.tsv", f"text\tlabel\n{first}\tx\n{second}\ty\n", [(first, "x"), (second, "y")], None)
      for first, second in (('6" pipe', '"he said'), ('"He ""x"" y"', '6" z'), ('a ""b"" c', "d"),
                            ('"Go."', "plain"), ('"Go." he said', '"No."'))),
    # Other forms of the same rows.
    ("a.jsonl", '[{"text": "x", "label": "a"},\n {"text": "y", "label": "b"}]\n', ROWS, None),
    ("a.json", '[{"text": "x", "label": "a"}, {"text": "y", "label": "b"}]', ROWS, None),
    ("a.json", '{"text": "x", "label": "a"}\n{"text": "y", "label": "b"}\n', ROWS, None),
    ("a.json", '{\n "text": "x",\n "label": "a"\n}\n', ROWS[:1], None),
    ("a.csv", "text, label \nx, a\ny,b \n", ROWS, ""),
    ("a.tsv", "text \tlabel\nx\t a\ny\tb\n", ROWS, ""),
    ("a.csv", "text,label\nx,a\ntext,label\ny,b\n", ROWS,
     "rows that repeat the header are left out: 1"),
    ("a.jsonl", '{"text": "x", "label": ["a"]}\n{"text": "y", "label": {"a": 0, "b": 1}}\n', ROWS,
     ""), ("a.csv", "text,label\nx,['a']\ny,\"[\"\"b\"\"]\"\n", ROWS, "")])
def test_forms_of_tables(tmp_path, name, text, rows, note):
    notes = []
    (tmp_path / name).write_bytes(text.encode())
    examples = read_texts(tmp_path / name, spec(), notes=notes)
    assert [(*example.texts, example.label) for example in examples] == rows
    assert notes == [] if note is None else note in notes[0]


@pytest.mark.parametrize(("name", "text", "texts", "label", "expected", "note"), [
    ("a.tsv", "1\tfine\n0\tbad\n", "2", "1", [("fine", "1"), ("bad", "0")], "by number"),
    ("a.csv", '"3","T, x","B"\n"4","T","C"\n', "3", "1", [("B", "3"), ("C", "4")], "by number"),
    ("a.csv", '"3","T; x"\n"4","T; y"\n', "2", "1", [("T; x", "3"), ("T; y", "4")], "by number"),
    ("a.csv", "T, x;1\nT;0\n", "1", "2", [("T, x", "1"), ("T", "0")], "semicolons separate"),
    ("a.tsv", "label\ttext\n1\tfine\n", "2", "label", [("fine", "1")], None),
    ("a.csv", "0,1\nfine,yes\n", "0", "1", [("fine", "yes")], None)])  # As pandas numbers columns.
def test_columns_by_number(tmp_path, name, text, texts, label, expected, note):
    notes, path = [], write(tmp_path / name, text)
    examples = read_texts(path, spec(text_columns=(texts,), label_column=label), notes=notes)
    assert [(*example.texts, example.label) for example in examples] == expected
    assert notes == [] if note is None else note in notes[0]


PLAIN = spec()


@pytest.mark.parametrize(("name", "data", "task", "message"), [
    ("a.tsv", "text\ty\nx\t1\n", PLAIN, ":2: no column 'label'.*text, y.*--label_column"),
    ("a.tsv", "sentence\tlabel\nx\t1\n", PLAIN, ":2: no .*'text'.*sentence.*--text_columns"),
    ("a.jsonl", '{"text": "x", "label": null}\n', PLAIN, "'label' must be text"),
    ("a.jsonl", '{"text": "x", "label": "y"}\n{"a": \n', PLAIN, ":2: not JSON"),
    ("a.jsonl", '["x", "y"]\n["z", "w"]\n', PLAIN, "Write an object per line, or one list"),
    ("a.tsv", "text\tlabel\n1\t2\n1\n", PLAIN, r":3: 1 columns.* 2 .*\(text, label\)"),
    ("a.tsv", "text\tlabel\n", PLAIN, "no rows"),
    ("a.tsv", b"text\tlabel\n1\t\xff\n", PLAIN, ":2: not UTF-8 at byte 3.*`iconv -f latin1 -t "),
    ("a.tsv", "text\tlabel\ra\tx\rb\ty\r", PLAIN, "CR alone"),
    ("a.csv", "sep=;\ntext;label\nx;1\n", PLAIN, ":1: sep=; is a line for Excel"),
    ("a.csv", "Hello, world;1\nBye, you;0\n", spec(text_columns=("1",), label_column="2"),
     "as many ',' and as many ';'"),
    ("a.csv", "text,label\n".encode("utf-16"), PLAIN, "iconv -f utf-16 -t utf-8"),
    ("a.csv", b"\x1f\x8b.", PLAIN, r"gzip.*\.gz"),
    ("a.xlsx", b"PK\x03\x04...", PLAIN, r"read_excel\('/.*xlsx'\)"),
    ("a.parquet", b"PAR1\x15\x04", PLAIN, r"read_parquet\('/.*a\.parquet'\)\.to_"),
    ("a.dat", "text,label\n", PLAIN, r"\.tsv, \.csv or \.jsonl"),
    ("a.csv", "x,a\ny, z,b\n", spec(text_columns=("1",), label_column="2"), ":2: 3 columns.* 2 "),
    ("a.tsv", "text\tlabel\nx\t1\n", spec(key_column="id"), "no column 'id'.* --key_column"),
    ("a.tsv", "text\tlabel\nx\tbig\n", NUMBERS, ":2: 'label' must be a number.*'big'"),
    ("a.jsonl", '{"text": "x", "label": "y", "answer": "reject"}\n', PLAIN, ":1: .*Prodigy.*grep"),
    ("a.tsv", "text\tlabel\nx\t1_5\n", NUMBERS, ":2: 'label' must be a number.*'1_5'"),
    ("saved/dataset_dict.json", "{}", PLAIN, r"load_from_disk\('/.*saved'\)\['train'\]\.to_json")])
def test_what_cannot_be_read_is_named_with_its_line(tmp_path, name, data, task, message):
    path = write(tmp_path / name, "")
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with refused(message):
        read_texts(path if path.parent == tmp_path else path.parent, task)


def unquoted(path, separator="\t", **options):
    """The rows as pandas reads them without quotes."""
    frame = pytest.importorskip("pandas").read_csv(
        path, sep=separator, quoting=csv.QUOTE_NONE, dtype=str, keep_default_na=False, **options)
    return frame.to_numpy().tolist()


@pytest.mark.parametrize(("name", "separator"), [
    ("a.tsv", "\t"), ("a.csv", ",")])
def test_quotation_marks_in_text_swallow_no_rows(tmp_path, name, separator):
    for marks in ({3: '"{}'}, {3: '"{}', 9: '{}"'}, {3: '"{}', 4: '{}"'},
                  {3: '"{}', 4: '"{}"', 9: '{}"'}, {2: '"A" {}', 7: '{}"'}):
        lines = [marks.get(number, "{}").format(f"text {number}") + f"{separator}l{number % 2}"
                 for number in range(20)]
        notes, path = [], write(tmp_path / name, "\n".join([f"text{separator}label", *lines, ""]))
        examples = read_texts(path, spec(), notes=notes)
        assert [[*one.texts, one.label] for one in examples] == unquoted(path, separator), marks
        assert name == "a.tsv" or any("quotes do not enclose cells" in note for note in notes)


@pytest.mark.parametrize(("name", "separator", "rows"), [
    ("a.csv", ",", [["Hello, dear\nfriend", "b"], ["plain", "a"]]),
    ("a.csv", ",", [['He said "no"', "b"], ["two\nlines", "a"], ["x,y", "b"]]),
    ("a.csv", "\t", [["two\nlines", "b"], ["plain", "a"]]),
    ("a.tsv", "\t", [["two\nlines", "b"], ["x", "a\n1"], ['say "x"', "a"]])])
def test_line_ends_in_quoted_cells_stay(tmp_path, name, separator, rows):
    with (tmp_path / name).open("w", newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator="\n").writerows(
            [["text", "label"], *rows])
    assert [[*example.texts, example.label] for example in read_texts(
        tmp_path / name, spec())] == rows


STS = ("a\tb\tc\t1\t{}\tA man, he eats.\tSome food.\n"
       'a\tb\tc\t2\t{}\t"Go" he said.\tHe said "Go".\thttp://x\thttp://y\n'
       'a\tb\tc\t3\t{}\t"He runs.\tHe ran."\n' + "a\tb\tc\t4\t{}\tPlain.\tText.\n" * 6)


@pytest.mark.parametrize("name", ["sts.csv", "sts.tsv"])
def test_columns_by_number_need_no_other_columns(tmp_path, name):
    path, notes = write(tmp_path / name, STS.format(*range(9))), []
    task = spec("regression", text_columns=("6", "7"), label_column="5")
    examples = read_texts(path, task, notes=notes)
    assert [[str(int(example.label)), *example.texts] for example in examples] == unquoted(
        path, names=range(9), usecols=[4, 5, 6])
    assert any("1 rows do not have the 7 columns" in note and "line 2" in note for note in notes)
    with refused(r"sts\..sv:3: 2 columns, but 7"):
        read_texts(write(path, STS.format(*range(9)).replace("a\tb\tc\t3\t2\t", "")), task)


def test_labels_of_a_trained_model_stay_as_they_are(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\nx, a\ny,['b']\nz, c\n")
    examples = read_texts(path, spec(labels=(" a", "['b']")))
    assert [example.label for example in examples] == [" a", "['b']", "c"]
    path = write(tmp_path / "b.csv", "text,label\nx,a#b\ny,b\nz,a\nu,b#a\n")
    task = spec(Kind.MULTILABEL, labels=("a", "b", "a#b", "b#a"))
    assert [example.label for example in read_texts(path, task)] == [
        ("a#b",), ("b",), ("a",), ("b#a",)]


@pytest.mark.parametrize(("task", "labels"), [
    ("classification", ["a", "b", "a", "b"]), ("regression", [1, 2, 3, 4]),
    ("multilabel", [["a"], ["b"], [], ["b"]])])
def test_empty_texts_are_not_trained_but_predicted(tmp_path, task, labels):
    texts = ["x", " ", "\u00a0\t", "y"]
    path = write(tmp_path / "a.jsonl", "".join(
        json.dumps({"text": text, "label": label}) + "\n"
        for text, label in zip(texts, labels, strict=True)))
    loaded = registry.load(task, None, Files(train=[path], dev=[path], test=[path]))
    assert [example.texts[0] for example in loaded.train] == ["x", "y"]
    for examples in (loaded.dev["dev"], loaded.test["test"]):
        assert [(example.key, example.texts[0]) for example in examples] == [
            *zip("1234", texts, strict=True)]
    assert [note for note in loaded.notes if "2 of 4 rows have an empty text" in note]
    blank = write(tmp_path / "b.jsonl", path.read_text().replace('"x"', '""').replace('"y"', '""'))
    with refused(r"b\.jsonl: no row has a text"):
        registry.load(task, None, Files(train=[blank], dev=[path]))


def test_notes_on_copies_with_other_labels_and_in_dev(tmp_path):
    train = write(tmp_path / "a.csv", "text,label\nx,a\ny,b\nx,b\nx,a\n")
    dev = write(tmp_path / "b.csv", "text,label\ny,b\nz,a\n")
    task = registry.load("classification", None, Files(train=[train], dev=[dev]))
    assert [note for note in task.notes if "text" in note] == [
        "texts that occur with different labels: 1, such as 'x'",
        "1 of 2 examples of dev have texts that are also trained, so the scores may be too high"]
    assert not registry.load("classification", None, Files(train=[dev])).notes[1:]


@pytest.mark.parametrize(("kind", "train", "dev"), [
    ("regression", '{"text": "x", "label": 1}\n{"text": "y", "label": 2}', 0),
    ("multilabel", '{"text": "x", "label": []}\n{"text": "y", "label": ["a", "b"]}', 0),
    ("tagging", '{"text": ["x"], "label": ["A"]}\n{"text": ["y"], "label": ["B"]}', 0),
    ("question_answering", "".join(
        f'{{"question": "{text}?", "context": "so", "answers": []}}\n' for text in "xy"), 0),
    ("sentence_embeddings", "".join(
        f'{{"text": "{text}", "other": "so{text}", "third": "no"}}\n' for text in "xy"), 2)])
def test_a_copy_in_dev_is_noted_for_every_kind(tmp_path, kind, train, dev):
    first, *_ = lines = train.split("\n")
    paths = [write(tmp_path / name, content) for name, content in (
        ("a.jsonl", train), ("b.jsonl", "\n".join([first.replace('"x', '"z'), *lines[1:]])))]
    columns = ("text", "other", "third") if dev else ()
    task = registry.load(kind, None, Files(
        train=paths[:1], dev=paths[1:], text_columns=columns, dev_text_columns=columns[:dev]))
    assert [note for note in task.notes if "dev have" in note] == [
        "1 of 2 examples of dev have texts that are also trained, so the scores may be too high"]
    assert not any("different labels" in note for note in task.notes)


@pytest.mark.parametrize(("kind", "label"), [("regression", 1.5), ("sentence_embeddings", 1)])
def test_a_pair_in_dev_with_swapped_texts_is_a_copy_but_may_have_another_label(
        tmp_path, kind, label):
    train = write(tmp_path / "a.csv", f"text,other,label\nx,y,1\nv,w,1\nz,y,{label}\n")
    dev = write(tmp_path / "b.csv", "text,other,label\ny,x,0\nw,v,2\nv,v,3\n")
    columns = ("text", "other")
    task = registry.load(kind, None, Files(train=[train], dev=[dev], text_columns=columns))
    assert [note for note in task.notes if "texts that" in note] == [
        "2 of 3 examples of dev have texts that are also trained, so the scores may be too high"]


def test_training_pairs_of_sentence_embeddings_have_no_labels_that_could_differ_from_dev(tmp_path):
    train = write(tmp_path / "a.csv", "text,other,label\nx,y,1\nv,w,1\n")
    dev = write(tmp_path / "b.csv", "text,other,label\nx,y,1\nv,w,0.5\n")
    files = Files(train=[train], dev=[dev], text_columns=("text", "other"))
    notes = registry.load("sentence_embeddings", None, files).notes
    assert notes[0] == f"{train}: column 'label' is not read"
    assert len(notes) == 2 and "2 of 2 examples of dev have texts" in notes[1]


def test_pairs_with_one_empty_text_are_trained_with_a_note(tmp_path):
    path = write(tmp_path / "a.csv", "title,body,label\na,,x\n,b,y\n,,x\nc,d,y\n")
    task = registry.load("classification", None, Files(
        train=[path], dev=[path], text_columns=("title", "body")))
    assert [example.texts for example in task.train] == [("a", ""), ("", "b"), ("c", "d")]
    assert {*re.findall("[12] of 4 rows have (?:one|an) empty", str(task.notes))} == {
        "2 of 4 rows have one empty", "1 of 4 rows have an empty"}
