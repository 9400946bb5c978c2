"""Sets of labels: read or refused by their line, learned as in transformers, scored by hand."""

import json
import types

import numpy as np
import pytest
import tensorflow as tf
from sklearn import metrics

from electra_tf.config.finetuning import TaskConfig
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
                         Files(train=[path], dev=[path], label_column=label, **user_files))


def json_lines(*labels):
    return "".join(json.dumps({"text": "x", "label": value}) + "\n" for value in labels)


LABELS = ("a", "b"), (), ("b",)
MANY = ("0", "2"), (), ("1",)
TOXIC = ("toxic",), (), ("toxic",)


@pytest.mark.parametrize(("name", "content", "label", "sets", "note"), [
    # Lists, cells and columns of 0 and 1.
    ("a.jsonl", json_lines(["b", "a"], [], ["b"]), "label", LABELS, None),
    ("a.jsonl", '{"text": "x", "a": 1, "b": true}\n{"text": "x", "a": 0, "b": false}\n'
     '{"text": "x", "a": 0.0, "b": 1.0}\n', "a, b,a", LABELS, None),
    ("a.tsv", "text\tlabel\nx\tb, a\nx\t\nx\tb\n", "label", LABELS, "separated by ','"),
    ("a.csv", "text,b,a\nx,1,1\nx,False,0\nx,1.0,0\n", "a,b", LABELS, None),
    ("a.jsonl", '{"text": "x", "toxic": 1}\n{"text": "x", "toxic": 0.0}\n'
     '{"text": "x", "toxic": true}\n', "toxic", TOXIC, "column 'toxic' has 0 and 1"),
    *(("a.tsv", f"text\ttoxic\nx\t{values}\n".replace(" ", "\nx\t"), "toxic", TOXIC, None)
      for values in ("1 0 1", "True False True")),
    # As other programs write them.
    ("a.csv", "text,label\nx,\"['b', 'a']\"\nx,[]\nx,['b']\n", "label", LABELS, "printed lists"),
    ("a.jsonl", json_lines("['b', 'a']", "[]", '["b"]'), "label", LABELS, "printed lists"),
    ("a.jsonl", json_lines({"a": 1.0, "b": 1.0}, {"a": 0, "b": 0}, {"a": False, "b": True}),
     "label", LABELS, "objects"),
    ("a.csv", 'text,label\nx,"b,a"\nx,\nx,"b,"\n', "label", LABELS, "separated by ','"),
    ("a.csv", "text;label\nx;b|a|\nx;\nx;|b\n", "label", LABELS, "separated by '|'"),
    ("a.csv", "text,label\nx,b#a\nx,\nx,b\nx,a\nx,a#b\n", "label", LABELS, "separated by '#'"),
    ("a.tsv", "text\tlabel\nx\tb a\nx\t\nx\tb\nx\ta\nx\ta b\n", "label", LABELS, "by ' '"),
    # Lists of 0 and 1 have a label for each position, lists of numbers of labels not.
    ("a.jsonl", json_lines([1, 0, 1], [0, 0, 0], [0, 1, 0]), "label", MANY, "lists of 0 and 1"),
    ("a.csv", 'text,label\nx,"[1, 0, 1]"\ny,"[0, 0, 0]"\nz,"[0, 1, 0]"\n', "label", MANY, "0 an"),
    ("a.tsv", "text\tlabel\nx\t1,0,1\ny\t0,0,0\nz\t0,1,0\n", "label", MANY, "lists of 0 and 1"),
    ("a.jsonl", json_lines([0], [1], [0, 1], []), "label", (("0",), ("1",), ("0", "1"), ()), None),
    ("a.jsonl", json_lines([0], [1], [1]), "label", (("0",), ("1",), ("1",)), None)])
def test_sets_are_read_in_every_form(tmp_path, name, content, label, sets, note):
    task = load(tmp_path, name, content, label)
    assert [example.label for example in task.train][:len(sets)] == [*sets]
    assert task.spec.labels == tuple(sorted({name for labels in sets for name in labels}))
    assert note is None or note in " ".join(task.notes)


@pytest.mark.parametrize(("name", "content", "label", "words"), [
    ("a.jsonl", json_lines("a"), "label", ":1: 'label' must be a list of different labels"),
    ("a.jsonl", json_lines(["a", "a"]), "label", "different labels.* Received: .'a', 'a'"),
    ("a.jsonl", json_lines(["a"], None), "label", ":2: .*different labels.* None"),
    ("a.jsonl", json_lines([1, 2], 1, [0]), "label", ":2: 'label' must be a list of different"),
    ("a.jsonl", json_lines(1, 2), "label", ":1: 'label' must be a list of different labels"),
    ("a.tsv", "text\ttoxic\nx\t1\nx\t0\nx\t\n", "toxic", ":4: 'toxic' must be a list"),
    ("a.tsv", "text\tlabel\nx\ta,b|c\n", "label", "'label' has ',' and '|'"),
    ("a.tsv", "text\tlabel\nx\t['a' 'b']\n", "label", r":2: 'label' .*\['a' 'b'\]"),
    ("a.jsonl", json_lines([1, 0, 1], [1, 0]), "label", ":1: .*0 and 1 .*Received: .1, 0, 1"),
    ("a.csv", "text,a,b\nx,1,2\n", "a,b", ":2: 'b' must be 0 or 1.*'2'"),
    ("a.csv", "text,a,b\nx,1,0\n", "a,c", ":2: no column 'c'.* text, a, b")])
def test_sets_that_cannot_be_read_are_refused(tmp_path, name, content, label, words):
    with refused(words):
        load(tmp_path, name, content, label)


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


@pytest.mark.parametrize(("name", "train", "dev", "expected"), [
    ("a.csv", "text,label\nx,0|1\ny,1\nz,2\n", "text,label\nu,1\nv,0\n",
     [("1",), ("0",)]),
    ("a.jsonl", json_lines([0, 1], [1], [2]), json_lines([0, 1], [1, 0]), [("0", "1")] * 2)])
def test_dev_is_read_with_the_labels_of_training(tmp_path, name, train, dev, expected):
    paths = [write(tmp_path / f"{split}_{name}", content)
             for split, content in (("train", train), ("dev", dev))]
    task = registry.load("multilabel", None, Files(train=paths[:1], dev=paths[1:]))
    assert [example.label for example in task.dev["dev"]] == expected


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
    with refused("results.json"):
        scored([None], label_threshold=0.0)


def test_files_and_mistakes_show_sets():
    records = scored([("b",), ()]).records
    assert KIND.formatters(SPEC)[".tsv"](records) == (
        "key\tprediction\tprobability of a\tprobability of b\tgold\ttext\n"
        '0\t["a"]\t0.5\t0.268941\t["b"]\tx\n1\t["a"]\t0.5\t0.268941\t[]\tx\n')
    assert [(record["gold"], record["prediction"], round(record["probability"], 2))
            for record in KIND.decisions(records)] == [
        ("b", "(none)", 0.73), ("(none)", "a", 0.5), ("(none)", "a", 0.5)]
