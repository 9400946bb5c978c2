"""Data in memory becomes the task that a file with the same rows becomes."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.tasks import in_memory, registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.task import Kind, TaskSpec
from tests.support.refusals import refused

TEXTS, OTHERS = ["one", "two", "three", "four"], ["a", "b", "c", "d"]
LABELS = [1, 0, 0, 1]
PAIRS = [list(pair) for pair in zip(TEXTS, OTHERS, strict=True)]
PAIR_COLUMNS = {"text_1": TEXTS, "text_2": OTHERS, "label": LABELS}
WORDS, TAGS = [["He", "runs"], ["Oslo"]], [["O", "O"], ["B-LOC"]]
QUESTION = {"id": "7", "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]}


def table(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def data_set(*parts):
    return tf.data.Dataset.from_tensor_slices(parts if len(parts) > 1 else parts[0])


def load(train, labels=None, dev=None, *, task="classification"):
    write = functools.partial(in_memory.write, kind=Kind(task))
    file = write("train", data=train, labels=labels)
    return registry.load(task, None, Files(
        text_columns=file.text_columns, train=[file],
        dev=[] if dev is None else [write("dev", data=dev)]))


def content(task):
    """The spec and all examples."""
    return task.spec, task.train, task.dev


def of_file(tmp_path, rows, task="classification", **columns):
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return content(registry.load(task, None, Files(
        train=[tmp_path / "train.jsonl"], dev=[tmp_path / "train.jsonl"], **columns)))


NUMBERS = [0.5, 1.5, 2.5, 3.5]
SETS = [["a", "b"], [], ["b"], ["a"]]
MATRIX = [[1, 1], [0, 0], [0, 1], [1, 0]]
FORMS = [
    ("classification", TEXTS, LABELS, [
        lambda: (np.array(TEXTS), np.array(LABELS)), lambda: ((TEXTS, LABELS),),
        lambda: (tf.constant(TEXTS), tf.constant(LABELS)),
        lambda: (table({"text": TEXTS, "label": LABELS, "other": [1.0, np.nan, 2.0, np.inf]}),),
        lambda: (table({"x": TEXTS})["x"], table({"y": LABELS})["y"]),
        lambda: ({"text": TEXTS, "label": LABELS},),
        lambda: ([dict(zip(("text", "label"), row, strict=True))
                  for row in zip(TEXTS, LABELS, strict=True)],),
        lambda: (data_set(TEXTS, LABELS),), lambda: (data_set(TEXTS, LABELS).batch(3),),
        lambda: (data_set({"text": TEXTS, "label": LABELS}).batch(3),)]),
    ("classification", PAIRS, LABELS, [
        lambda: (np.array(PAIRS), np.array(LABELS)), lambda: (table(PAIR_COLUMNS),),
        lambda: (table(PAIR_COLUMNS)[["text_1", "text_2"]], LABELS),
        lambda: (data_set((TEXTS, OTHERS), LABELS).batch(2),), lambda: (data_set(PAIRS, LABELS),),
        lambda: (data_set({"text_1": TEXTS, "text_2": OTHERS}, LABELS),)]),
    ("regression", TEXTS, NUMBERS, [
        lambda: (np.array(TEXTS, object), np.array(NUMBERS, object))]),
    ("tagging", WORDS, TAGS, [lambda: (tf.ragged.constant(WORDS), tf.ragged.constant(TAGS))]),
    ("multilabel", TEXTS, SETS, [
        lambda: ({"text": TEXTS, "label": SETS},), lambda: (TEXTS, tf.ragged.constant(SETS)),
        lambda: (TEXTS, table(dict(zip("ab", zip(*MATRIX, strict=True), strict=True))))])]
"""Kind of task, texts and labels, and other forms of them."""


@pytest.mark.parametrize(("task", "texts", "labels", "form"), [
    (*case, form) for *case, forms in FORMS for form in (lambda case=case: case[1:], *forms)])
def test_every_form_is_the_task_of_a_file(tmp_path, task, texts, labels, form):
    columns = ("text_1", "text_2") if texts is PAIRS else ("text",)
    rows = [dict(zip((*columns, "label"), (*(text if texts is PAIRS else (text,)), label),
                     strict=True)) for text, label in zip(texts, labels, strict=True)]
    assert content(load(*form(), dev=(texts, labels), task=task)) == of_file(
        tmp_path, rows, task, text_columns=columns)


@pytest.mark.parametrize("labels", [SETS, np.array(MATRIX)])
def test_columns_of_a_task_name_the_labels_beside_texts(labels):
    task = registry.load("multilabel", None, Files(
        text_columns=("text",), label_column="a,b", train=[in_memory.write(
            "train", Kind.MULTILABEL, TEXTS, labels, label_column="a,b")]))
    labelled = {example.texts[0]: example.label for example in (*task.train, *task.dev["dev"])}
    assert [set(labelled[text]) for text in TEXTS] == [set(labels) for labels in SETS]
    with refused("train:1: labels must be a list of some of a, c. Received"):
        in_memory.write("train", Kind.MULTILABEL, TEXTS, SETS, label_column="a,c")


def test_columns_of_a_data_frame_have_their_names_beside_labels_too():
    frame = table({"b": OTHERS, "a": TEXTS})
    expected = in_memory.write("train", Kind.CLASSIFICATION, PAIRS, LABELS, text_columns=("a", "b"))
    named = in_memory.write("train", Kind.CLASSIFICATION, frame, LABELS, text_columns=("a", "b"))
    assert list(map(json.loads, named.open("rb"))) == list(map(json.loads, expected.open("rb")))
    with refused("train has no column 'text'. There are: b, a.*; text_columns"):
        in_memory.write("train", Kind.CLASSIFICATION, frame, LABELS)


def test_texts_without_labels_are_those_of_named_columns_and_no_names_of_columns():
    spec = TaskSpec(name="classification", kind=Kind.CLASSIFICATION, metrics=("accuracy",),
                    text_columns=("a", "b"))
    frame = table({"b": OTHERS, "a": TEXTS, "id": LABELS})
    assert in_memory.texts_of("unlabelled", spec, frame) == PAIRS
    for data, words in (([{"a": "x", "b": "y"}], "unlabelled:1 must be a string"),
                        ((TEXTS[:2], OTHERS[:2]), "ambiguous"),
                        (frame[["id", "a"]], "unlabelled have no column 'b'")):
        with refused(words):
            in_memory.texts_of("unlabelled", spec, data)


def test_questions_are_those_of_a_file_of_squad(tmp_path):
    squad = {"data": [{"paragraphs": [{"context": "Ada.", "qas": [QUESTION]}]}]}
    (tmp_path / "train.json").write_text(json.dumps(squad))
    path = [tmp_path / "train.json"]
    expected = content(registry.load("question_answering", None, Files(train=path, dev=path)))
    row = QUESTION | {"context": "Ada.", "answers": {"text": ["Ada"], "answer_start": [0]}}
    for data in (squad, squad["data"], [row]):
        assert content(load(data, dev=data, task="question_answering")) == expected
    unanswerable = row | {"answers": {"text": [], "answer_start": []}}
    [example] = load([unanswerable], dev=[row], task="question_answering").train
    assert example.is_impossible and example.span is None


def test_integers_and_booleans_are_labels_as_text_and_dev_is_held_out():
    task = load(TEXTS * 5, [True, False, True, False] * 5)
    assert task.spec.labels == ("False", "True")
    assert len(task.train) + len(task.dev["dev"]) == 20 and "held out" in task.notes[0]


@pytest.mark.parametrize(("data", "words"), [
    ((TEXTS, [1.0, 0.0, np.nan, 1.0]), "train:1: a class must be text, an integer"),
    ((TEXTS, ["a", "b", None, "a"]), "train:3: 'label' .*None"),
    ((["a", b"b\xff"], [0, 1]), "train:2: not UTF-8 at byte 2; give text.* b'b.xff'"),
    (("classification", np.array([b"a", b"\xe9"]), [0, 1]), "train:2: not UTF-8"),
    ((TEXTS, [b"x", b"\xe9", b"x", b"y"]), "labels of train:2: not UTF-8"),
    ((data_set([b"a", b"\xe9"], LABELS[:2]),), "train:2: not UTF-8"),
    ((["a", "\ud800"], [0, 1]), "train:2: half of a character"),
    ((TEXTS, LABELS[:3]), "4 texts, 3 labels"),
    (([], []), "no examples"), ((TEXTS, [1, "a", 0, 1]), "int, str"),
    ((TEXTS,), "train has no labels"), ((TEXTS, [1] * 4), "one label only"),
    (((["a", "b"], ["c", "d"]), [0, 1]), "ambiguous"),
    ((tuple(np.array([["a", "b"], ["c", "d"]])), [0, 1]), "ambiguous"),
    (([table({"x": ["a", "b"]})["x"]] * 2, [0, 1]), "a list of columns is ambiguous"),
    (([("a", "b"), "c"], [0, 1]), r"train:2: 2 text\(s\) per example"),
    ((data_set(TEXTS, LABELS).repeat(),), "without an end"),
    ((TEXTS, LABELS, TEXTS), "dev has no labels"),
    ((TEXTS, LABELS, (TEXTS, [7] * 4)), "dev: 1: the label '7'"),
    (("regression", TEXTS, [1.0, 2.0, np.nan, 0.0]), "train:3: 'label' .*None"),
    (("sentence_embeddings", (["a", "b"], ["c", "d"])), "ambiguous"),
    (("regression", TEXTS, [1.0, np.inf, 2.0, 3.0]), "train:2: Infinity"),
    (("multilabel", TEXTS, 2 * np.array(MATRIX)), "0 or 1 .* 2"),
    (("tagging", WORDS, [["O"], ["O"]]), "train:1: 2 words and 1 tags"),
    (("tagging", ["He runs"], ["O O"]), "list of strings, one for each word"),
    (("question_answering", [{"context": "Ada."}]), "'question' is missing"),
    (("question_answering", TEXTS), "dictionaries")])
def test_other_data_is_refused_in_one_line(data, words):
    task, data = (data[0], data[1:]) if data[0] in [*Kind] else ("classification", data)
    with refused(words):
        load(*data, task=task)


@pytest.mark.parametrize(("missing", "column"), [
    ("nan", "text"), ("NA", "label"), ("NaT", "label"), ("None", "text")])
def test_missing_values_of_pandas_are_named_with_row_and_column(missing, column):
    pandas = pytest.importorskip("pandas")
    columns = {"text": ["a", "b", "c"], "label": ["x", "y", "x"], "other": [1.0, np.nan, None]}
    columns[column][1] = {"nan": np.nan, "NA": pandas.NA, "NaT": pandas.NaT, "None": None}[missing]
    for frame in (pandas.DataFrame(columns), pandas.DataFrame(columns).astype(object)):
        with refused(f"train:2: '{column}' must be text. Received: None, a missing value.*dropna"
                     ".*keep_default_na=False"):
            load(frame)


@pytest.mark.parametrize("labels", [
    MATRIX, [str(row) for row in MATRIX], np.array(MATRIX, bool).tolist(), np.array(MATRIX)])
def test_lists_of_0_and_1_have_numbers_or_names_of_columns_as_labels(labels):
    task = load(TEXTS, labels, (TEXTS, labels), task="multilabel")
    assert [example.label for example in task.train] == [("0", "1"), (), ("1",), ("0",)]
    assert isinstance(labels, np.ndarray) or "lists of 0 and 1" in str(task.notes)
    file = in_memory.write("train", Kind.MULTILABEL, TEXTS, MATRIX, label_column="x,y")
    task = registry.load("multilabel", None, Files(train=[file], dev=[file], label_column="x,y"))
    assert [example.label for example in task.train] == [("x", "y"), (), ("y",), ("x",)]
