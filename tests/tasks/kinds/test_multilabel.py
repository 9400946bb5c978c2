"""Sets of labels: read or refused by their line, learned as in transformers, scored by hand."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf
from sklearn import metrics

from electra_tf.config.finetuning import TaskConfig
from electra_tf.core.errors import UserError
from electra_tf.data.buckets import RowBatch
from electra_tf.tasks import registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds.multilabel import best_threshold, set_scores
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, TaskSpec, TextExample
from electra_tf.text.rows import RowEncoder
from tests.support.few_words import TEXT
from tests.support.refusals import refused
from tests.support.text_files import write
from tests.support.tiny_networks import task_objective

KIND = KINDS[Kind.MULTILABEL]
SPEC = TaskSpec(name="multilabel", kind=Kind.MULTILABEL, labels=("a", "b"), metrics=KIND.metrics)


def examples(*labels):
    return [TextExample(key=str(number), texts=("x",), label=label)
            for number, label in enumerate(labels)]


def load(tmp_path, name, content, label="label", **user_files):
    path = write(tmp_path / name, content)
    return registry.load("multilabel", None,
                         Files(train=[path], dev=[path], label=label, **user_files))


def json_lines(*labels):
    return "".join(json.dumps({"text": "x", "label": value}) + "\n" for value in labels)


@pytest.mark.parametrize(("name", "content", "label", "note"), [
    ("a.jsonl", json_lines(["b", "a"], [], ["b"]), "label", None),
    ("a.jsonl", '{"text": "x", "a": 1, "b": true}\n{"text": "x", "a": 0, "b": false}\n'
     '{"text": "x", "a": 0.0, "b": 1.0}\n', "a, b,a", None),
    ("a.tsv", "text\tlabel\nx\tb, a\nx\t\nx\tb\n", "label", "has labels separated by ','"),
    ("a.csv", 'text;label\nx;a|b\nx;\nx;b\n', "label", "has labels separated by '|'"),
    ("a.csv", "text,b,a\nx,1,1\nx,False,0\nx,1.0,0\n", "a,b", None)])
def test_sets_are_read_from_lists_cells_and_indicators(tmp_path, name, content, label, note):
    task = load(tmp_path, name, content, label)
    assert [example.label for example in task.train] == [("a", "b"), (), ("b",)]
    assert task.spec.labels == ("a", "b")
    assert note is None or any(note in line for line in task.notes)


@pytest.mark.parametrize(("name", "content", "note"), [
    ("a.csv", "text,label\nx,\"['b', 'a']\"\nx,[]\nx,['b']\n", "printed lists"),
    ("a.csv", 'text,label\nx,"[""b"", ""a""]"\nx,[]\nx,"[""b""]"\n', "printed lists"),
    ("a.csv", "text,label\nx,\"{'a', 'b'}\"\nx,\nx,b\n", "printed lists"),
    ("a.jsonl", json_lines("['b', 'a']", "[]", '["b"]'), "printed lists"),
    ("a.jsonl", json_lines({"a": 1.0, "b": 1.0}, {"a": 0, "b": 0}, {"a": False, "b": True}),
     "objects, which are read"),
    ("a.csv", 'text,label\nx,"b,a"\nx,\nx,"b,"\n', "separated by ','"),
    ("a.csv", "text;label\nx;b|a|\nx;\nx;|b\n", "separated by '|'"),
    ("a.csv", "text,label\nx,b#a\nx,\nx,b\nx,a\nx,a#b\n", "separated by '#'"),
    ("a.csv", 'text,label\nx,"b\na"\nx,\nx,b\nx,a\nx,"a\nb"\n', r"separated by '\n'"),
    ("a.tsv", "text\tlabel\nx\tb a\nx\t\nx\tb\nx\ta\nx\ta b\n", "separated by ' '"),
    ("a.jsonl", json_lines(["b ", "a"], [], [" b"]), None)])
def test_labels_as_other_programs_write_them(tmp_path, name, content, note):
    task = load(tmp_path, name, content)
    assert [example.label for example in task.train][:3] == [("a", "b"), (), ("b",)]
    assert task.spec.labels == ("a", "b")
    assert note is None or any(note in line for line in task.notes)


@pytest.mark.parametrize(("name", "content"), [
    ("a.jsonl", json_lines([1, 0, 1], [0, 0, 0], [0, 1, 0])),
    ("a.json", f"[{','.join(json_lines([1, 0, 1], [0, 0, 0], [0, 1, 0]).splitlines())}]"),
    ("a.csv", 'text,label\nx,"[1, 0, 1]"\ny,"[0, 0, 0]"\nz,"[0, 1, 0]"\n'),
    ("a.tsv", "text\tlabel\nx\t1,0,1\ny\t0,0,0\nz\t0,1,0\n"),
    ("a.jsonl", json_lines([True, False, True], [0.0, 0.0, 0.0], [0, 1, 0]))])
def test_lists_of_0_and_1_have_a_label_for_each_position(tmp_path, name, content):
    task = load(tmp_path, name, content)
    assert [example.label for example in task.train] == [("0", "2"), (), ("1",)]
    assert any("lists of 0 and 1 for each label" in note for note in task.notes)


def test_lists_of_numbers_of_labels_are_no_lists_of_0_and_1(tmp_path):
    task = load(tmp_path, "a.jsonl", json_lines([0], [1], [0, 1], []))
    assert [example.label for example in task.train] == [("0",), ("1",), ("0", "1"), ()]
    task = load(tmp_path, "a.jsonl", json_lines([0], [1], [1]))
    assert [example.label for example in task.train] == [("0",), ("1",), ("1",)]


def test_many_numbers_are_sorted_as_numbers(tmp_path):
    task = load(tmp_path, "a.jsonl", json_lines(*([number, number + 1] for number in range(12))))
    assert task.spec.labels == tuple(map(str, range(13)))


@pytest.mark.parametrize("values", ["1.0 0.0 1.0", "True False True", "true false true"])
def test_one_indicator_column_may_have_other_forms(tmp_path, values):
    cells = "".join(f"x\t{value}\n" for value in values.split())
    task = load(tmp_path, "a.tsv", f"text\ttoxic\n{cells}", "toxic")
    assert [example.label for example in task.train] == [("toxic",), (), ("toxic",)]


def test_one_indicator_column_is_one_label(tmp_path):
    task = load(tmp_path, "a.tsv", "text\ttoxic\nx\t1\ny\t0\n", "toxic")
    assert (task.spec.labels, [example.label for example in task.train]) == (
        ("toxic",), [("toxic",), ()])


@pytest.mark.parametrize(("name", "content", "label", "words"), [
    ("a.jsonl", json_lines("a"), "label", r":1: 'label' must be a list of different labels"),
    ("a.jsonl", json_lines(["a", "a"]), "label", "different labels.* Received: .'a', 'a'"),
    ("a.jsonl", json_lines(["a", " "]), "label", "must be a list of different labels"),
    ("a.jsonl", json_lines(["a"], [0.5]), "label", ":2: .*different labels"),
    ("a.jsonl", json_lines(["a"], None), "label", ":2: .*different labels.* Received: None"),
    ("a.jsonl", json_lines([], []), "label", r"all texts have the same labels, \[\]"),
    ("a.tsv", "text\ttoxic\nx\t1\nx\t0\nx\t\n", "toxic", ":4: 'toxic' must be a list"),
    ("a.tsv", "text\tlabel\nx\ta,b|c\n", "label", "'label' has ',' and '|'; separate"),
    ("a.tsv", "text\tlabel\nx\ta,,b\n", "label", ":2: 'label' must be a list"),
    ("a.tsv", "text\tlabel\nx\t['a' 'b']\n", "label", r":2: 'label' .*Received: .\['a' 'b'\]"),
    ("a.tsv", "text\tlabel\nx\ta,,b\n", "label", ":2: 'label' must be .* Received: 'a,,b'"),
    ("a.jsonl", json_lines([1, 0, 1], [1, 0]), "label", ":1: .*0 and 1 .*Received: .1, 0, 1"),
    ("a.jsonl", json_lines({"a": 0.5}), "label", ":1: 'label' must be a list of different"),
    ("a.csv", "text,a,b\nx,1,2\n", "a,b", ":2: 'b' must be 0 or 1. Received: '2'"),
    ("a.csv", "text,a,b\nx,1,\n", "a,b", ":2: 'b' must be 0 or 1. Received: ''"),
    ("a.jsonl", '{"text": "x", "a": 1, "b": 0.5}\n', "a,b", ":1: 'b' must be 0 or 1"),
    ("a.csv", "text,a,b\nx,1,0\n", "a,c", ":2: no column 'c'. There are: text, a, b")])
def test_sets_that_cannot_be_read_are_refused(tmp_path, name, content, label, words):
    with refused(words):
        load(tmp_path, name, content, label)


def test_labels_of_one_file_alone_are_noted(tmp_path):
    train = write(tmp_path / "train.csv", "text,a,b,c\nx,1,0,0\ny,0,1,0\n")
    dev = write(tmp_path / "dev.csv", "text,a,b,c\nx,1,0,1\ny,1,0,0\n")
    task = registry.load("multilabel", None, Files(train=[train], dev=[dev], label="a,b,c"))
    left_out = ("all texts or no texts have these labels, so they are not learned, or left out "
                "of ROC AUC and average precision")
    assert f"{train}: {left_out}: c" in task.notes and f"{dev}: {left_out}: a, b" in task.notes
    assert task.spec.labels == ("a", "b", "c")
    lists = [write(tmp_path / name, json_lines(*labels)) for name, labels in (
        ("train.jsonl", (["a"], ["b"])), ("dev.jsonl", (["a", "new"], [])))]
    task = registry.load("multilabel", None, Files(train=lists[:1], dev=lists[1:]))
    assert task.spec.labels == ("a", "b")
    assert any("1 labels that training never shows count as missed: new (1)" in note
               for note in task.notes)


def test_held_out_sets_are_stratified_and_unlabelled_texts_are_read(tmp_path):
    train = write(tmp_path / "a.jsonl", "".join(
        json.dumps({"text": f"text {number}", "label": [[], ["a"], ["a", "b"]][number % 3]}) + "\n"
        for number in range(60)))
    test = write(tmp_path / "b.tsv", "text\tother\nx\ty\n")
    task = registry.load("multilabel", None, Files(train=[train], test=[test]))
    assert sorted(example.label for example in task.dev["dev"]) == (
        [()] * 2 + [("a",)] * 2 + [("a", "b")] * 2)
    assert task.test["test"][0].label is None


def test_the_loss_is_that_of_transformers():
    """ElectraForSequenceClassification, problem_type multi_label_classification, 5.23.0."""
    logits = np.array([[2, -1, 0.5], [-3, 0.25, 1.5], [9, 9, 9]], np.float32)
    labels = np.array([[1, 0, 1], [0, 0, 0], [0, 0, 0]], np.float32)
    model = types.SimpleNamespace(encoder=types.SimpleNamespace(
        first=lambda ids, *_: tf.zeros([3, 4])), head=lambda vectors, _: tf.constant(logits))
    ids = np.zeros([3, 5], np.int32)
    batch = RowBatch(ids=tf.constant(ids), padding_mask=tf.ones([3, 5], bool), segment_ids=ids,
                     present=tf.constant([True, True, False]), targets={"labels": labels})
    objective = task_objective("multilabel", 3)
    count = objective.prepare_inputs(batch, None)[1]["loss"]
    loss = objective.compute(model, batch, None, training=True).loss_sums["loss"]
    assert float(loss / tf.cast(count, tf.float32)) == pytest.approx(0.5817010998725891, rel=1e-6)


def test_scores_are_those_of_scikit_learn():
    draw = np.random.default_rng(0)
    truth, probabilities = draw.random([50, 4]) < [0.5, 0.2, 0.05, 0.9], draw.random([50, 4])
    predicted = probabilities >= 0.4
    assert set_scores(truth, probabilities, 0.4) == pytest.approx({
        "f1_micro": metrics.f1_score(truth, predicted, average="micro"),
        "f1_macro": metrics.f1_score(truth, predicted, average="macro"),
        "roc_auc_macro": metrics.roc_auc_score(truth, probabilities, average="macro"),
        "average_precision_macro": metrics.average_precision_score(truth, probabilities)})
    # One label alone, and a second one that no text has: F1 0, and left out of the others.
    column = truth[:, :1], probabilities[:, :1]
    alone = set_scores(*column, 0.4)
    assert alone["f1_micro"] == alone["f1_macro"] == metrics.f1_score(truth[:, 0], predicted[:, 0])
    more = set_scores(*(np.pad(values, [(0, 0), (0, 1)]) for values in column), 0.4)
    assert more == alone | {"f1_macro": alone["f1_macro"] / 2}
    assert np.isnan(set_scores(np.zeros([2, 1], bool), np.zeros([2, 1]), 0.5)["roc_auc_macro"])


def test_the_searched_threshold_has_the_best_micro_f1():
    draw = np.random.default_rng(1)
    truth, probabilities = draw.random([40, 3]) < 0.3, draw.random([40, 3])
    best = max(metrics.f1_score(truth, probabilities >= cutoff, average="micro", zero_division=0)
               for cutoff in np.unique(probabilities))
    threshold = best_threshold(truth, probabilities)
    assert metrics.f1_score(truth, probabilities >= threshold, average="micro") == best
    assert np.abs(probabilities - threshold).min() > 1e-4  # The middle of a gap.
    assert best_threshold(np.ones([2, 1], bool), np.array([[0.4], [0.2]])) == 0.1
    assert best_threshold(np.zeros([2, 1], bool), np.array([[0.4], [0.2]])) == 0.5
    # Every float32 below 1 is at least 6e-8 away from it.
    assert best_threshold(np.array([[False], [True]]), np.array([[1 - 1e-12], [1.0]])) == 1 - 1e-6


def test_labels_that_the_task_lacks_count_as_missed_and_affect_no_other_score():
    truth = np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 0, 0]], bool)
    probabilities = np.array([[0.9, 0.4], [0.7, 0.6], [0.8, 0.5]])
    user_files = truth[:, :2]
    threshold = best_threshold(truth, probabilities)
    assert threshold == best_threshold(user_files, probabilities) == pytest.approx(0.55)
    scores, predicted = set_scores(truth, probabilities, threshold), np.pad(
        probabilities >= threshold, [(0, 0), (0, 2)])
    assert scores == pytest.approx({
        "f1_micro": metrics.f1_score(truth, predicted, average="micro"),
        "f1_macro": metrics.f1_score(truth, predicted, average="macro", zero_division=0),
        "roc_auc_macro": metrics.roc_auc_score(user_files, probabilities, average="macro"),
        "average_precision_macro": metrics.average_precision_score(user_files, probabilities)})
    # Of three texts each has the first label and a new one.
    truth, probabilities = np.array([[1, 0, 1]] * 3, bool), np.array([[0.9, 0.4]] * 3)
    assert best_threshold(truth, probabilities) == pytest.approx(0.65)
    assert set_scores(truth, probabilities, 0.65)["f1_micro"] == pytest.approx(2 / 3)
    assert best_threshold(np.array([[0, 0, 1]] * 3, bool), probabilities) == 0.5


def test_the_baseline_is_the_constant_set_with_the_best_micro_f1():
    # Of 4 texts, 4 have a, 2 b, 1 c: micro F1 of a 8 / 11, of a and b 12 / 15, of all 14 / 19.
    train = examples(("a", "b", "c"), ("a", "b"), ("a",), ("a",))
    name, scores = KIND.baseline(SPEC, train, examples(("a",), ("b", "new")))
    assert name == "always a, b"
    assert (scores["f1_micro"], scores["f1_macro"]) == pytest.approx(
        (2 * 2 / (3 + 4), (2 / 3 + 2 / 3 + 0) / 3))


def scored(labels, threshold=None, **config):
    """Scores texts with logits of 0 and -1 for a and b: probabilities 0.5 and 0.27."""
    split = KIND.encode(SPEC, examples(*labels), RowEncoder(TEXT, 8), TaskConfig(**config))
    return split.score([{"logits": np.array([0, -1], np.float32)}] * len(labels), threshold)


@pytest.mark.parametrize(("threshold", "config", "prediction"), [
    (None, {}, ["a"]), (None, {"label_threshold": 0.6}, []), (0.2, {}, ["a", "b"]),
    (None, {"label_threshold": 0.0}, ["a", "b"]), (0.4, {"label_threshold": 0.0}, ["a"])])
def test_labels_at_or_above_the_threshold_are_predicted(threshold, config, prediction):
    records, scores = scored([("a", "b")], threshold, **config)
    assert records[0]["prediction"] == prediction and list(records[0]["gold"]) == ["a", "b"]
    assert records[0]["probabilities"] == pytest.approx({"a": 0.5, "b": 1 / (1 + np.e)})
    assert ("threshold" in scores) == (config.get("label_threshold") == 0.0 and threshold is None)


def test_labels_that_training_lacks_are_missed_unknown_sets_not_scored():
    assert scored([("a", "new")]).scores["f1_micro"] == pytest.approx(2 * 1 / (2 + 1))
    assert scored([("a",), None]).scores == {}
    with pytest.raises(UserError, match="restore the run's results.json"):
        scored([None], label_threshold=0.0)


def test_files_and_mistakes_show_sets():
    records = scored([("b",), ()]).records
    assert KIND.forms(SPEC)[".tsv"](records) == (
        "key\tprediction\tprobability of a\tprobability of b\tgold\ttext\n"
        '0\t["a"]\t0.5\t0.268941\t["b"]\tx\n1\t["a"]\t0.5\t0.268941\t[]\tx\n')
    assert [(record["gold"], record["prediction"], round(record["probability"], 2))
            for record in KIND.decisions(records)] == [
        ("b", "(none)", 0.73), ("(none)", "a", 0.5), ("(none)", "a", 0.5)]
