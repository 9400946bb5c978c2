"""The user's own tables, sentences and label sets."""

import json

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks.examples import TaggedExample, TextExample
from electra_tf.tasks.files import (
    Columns,
    read_tagged,
    read_texts,
    require_known_labels,
)


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_are_picked_by_name(tmp_path):
    path = write(tmp_path, "a.csv", 'id,title,body,y\n7,"A, b",c,pos\n8,d,e,neg\n')
    columns = Columns(texts=("title", "body"), label="y", key="id")
    assert read_texts(path, columns) == [
        TextExample(key="7", texts=("A, b", "c"), label="pos"),
        TextExample(key="8", texts=("d", "e"), label="neg")]
    assert read_texts(path, columns, labelled=False)[0].label is None


def test_json_labels_may_be_numbers_or_truths(tmp_path):
    path = write(tmp_path, "a.jsonl", "".join(
        json.dumps({"text": "x", "label": label}) + "\n" for label in (1, True, "a")))
    assert [example.label for example in read_texts(path, Columns())] == ["1", "True", "a"]


def test_numbers(tmp_path):
    path = write(tmp_path, "a.jsonl", '{"text": "x", "label": 2}\n{"text": "y", "label": "-1e2"}')
    assert [one.label for one in read_texts(path, Columns(), numbers=True)] == [2.0, -100.0]


def test_tagged_sentences_of_json_lines_and_of_columns(tmp_path):
    record = {"words": ["EU", "rejects"], "tags": ["I-ORG", "O"]}
    path = write(tmp_path, "a.jsonl", json.dumps(record))
    columns = Columns(texts=("words",), label="tags")
    assert read_tagged(path, columns) == [
        TaggedExample(key="1", words=("EU", "rejects"), tags=("B-ORG", "O"))]
    assert read_tagged(write(tmp_path, "a.txt", "EU B-ORG\n"), columns)[0].tags == ("B-ORG",)


def test_a_label_that_training_doesnt_know_is_named(tmp_path):
    path = write(tmp_path, "dev.tsv", "text\tlabel\nx\tgood\ny\tgreat\n")
    with pytest.raises(UserError, match=(
            r"dev\.tsv: 3: the label 'great' isn't among those of the training file: bad, good\.")):
        require_known_labels(path, read_texts(path, Columns()), ("good", "bad"))


@pytest.mark.parametrize(("name", "text", "columns", "options", "message"), [
    ("a.tsv", "text\tlabel\nx\t\n", Columns(), {},
     r"a\.tsv:2: the label in column 'label' is empty"),
    ("a.tsv", "text\ty\nx\t1\n", Columns(), {},
     r"a\.tsv:2: no column 'label'\. There are: text, y\. --label_column says"),
    ("a.tsv", "sentence\tlabel\nx\t1\n", Columns(), {},
     r"a\.tsv:2: no column 'text'\. There are: sentence, label\. --text_columns says"),
    ("a.tsv", "text\nx\n", Columns(key="id"), {"labelled": False},
     r"no column 'id'\. There are: text\. --key_column says"),
    ("a.tsv", "text\tlabel\nx\tbig\n", Columns(), {"numbers": True},
     r"a\.tsv:2: 'label' must be a number\. Received: 'big'"),
    ("a.tsv", "text\tlabel\nx\tinf\n", Columns(), {"numbers": True}, "must be a number"),
    ("a.jsonl", '{"text": "x", "label": null}\n', Columns(), {}, "'label' must be text"),
])
def test_a_bad_row_is_named(tmp_path, name, text, columns, options, message):
    with pytest.raises(UserError, match=message):
        read_texts(write(tmp_path, name, text), columns, **options)


@pytest.mark.parametrize(("record", "message"), [
    ({"words": ["a", "b"], "tags": ["O"]}, r"a\.jsonl:1: 2 words and 1 tags"),
    ({"words": [], "tags": []}, "0 words and 0 tags"),
    ({"words": "a b", "tags": ["O", "O"]}, "'words' must be a list of texts. Received: 'a b'"),
    ({"words": ["a", ""], "tags": ["O", "O"]}, "'words' must be a list of texts"),
    ({"words": ["a"]}, r"no column 'tags'\. There are: words\. --label_column"),
    ({"words": ["a"], "tags": None}, "'tags' must be a list of texts. Received: None"),
])
def test_a_bad_sentence_is_named(tmp_path, record, message):
    path = write(tmp_path, "a.jsonl", json.dumps(record))
    with pytest.raises(UserError, match=message):
        read_tagged(path, Columns(texts=("words",), label="tags"))


def test_three_columns_of_text_are_refused():
    with pytest.raises(UserError, match="--text_columns takes one column, or two"):
        Columns(texts=("a", "b", "c"))
