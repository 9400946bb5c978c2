"""TensorFlow Datasets give the examples that the benchmarks' files give; small ones built here."""

import socket
import time

import numpy as np
import pytest
import tensorflow_datasets as tfds

from electra_tf.tasks import registry, tfds_source
from electra_tf.tasks.files import Files
from electra_tf.tasks.task import LABEL_WORDS, Kind
from tests.support.refusals import refused

TEXT = tfds.features.Text()


def build(data_dir, name, config, version, features, splits):
    """Writes a data set where TensorFlow Datasets looks for it, in the order given."""
    tfds.dataset_builders.store_as_tfds_dataset(
        name=name, version=version, config=config, data_dir=data_dir, disable_shuffling=True,
        features=tfds.features.FeaturesDict(features),
        split_datasets={split: list(enumerate(rows)) for split, rows in splits.items()})


def glue(data_dir, task, columns, labels, splits):
    label = np.float32 if labels is None else tfds.features.ClassLabel(names=labels)
    build(data_dir, "glue", task, "2.0.0",
          {**{column: TEXT for column in columns}, "label": label, "idx": np.int32}, splits)


def load(name, data_dir):
    return registry.load(name, data_dir, Files(), from_tfds=True)


def test_glue(tmp_path):
    for name, words in LABEL_WORDS.items():
        assert list(words) == tfds.builder_cls("glue").builder_configs[name].label_classes
    row = {"sentence": "It runs.", "label": "acceptable", "idx": 7}
    glue(tmp_path, "cola", ["sentence"], list(LABEL_WORDS["cola"]), {
        "train": [row, {**row, "label": "unacceptable"}], "validation": [row],
        "test": [{**row, "label": -1}]})
    task = load("cola", tmp_path)
    assert [(example.texts, example.label) for example in task.train] == [
        (("It runs.",), "1"), (("It runs.",), "0")]
    assert (task.spec.kind, task.spec.metrics) == (Kind.CLASSIFICATION, ("mcc",))
    assert [(example.key, example.label) for example in task.test["test"]] == [("7", None)]
    row = {"premise": "It rains.", "hypothesis": "It is dry.", "label": "contradiction", "idx": 3}
    columns, names = ["premise", "hypothesis"], ["entailment", "neutral", "contradiction"]
    tests = {split: [{**row, "label": -1}] for split in ("test", "test_matched", "test_mismatched")}
    glue(tmp_path, "ax", columns, names, {"test": tests.pop("test")})
    glue(tmp_path, "mnli", columns, names, tests | {
        "train": [row], "validation_matched": [row], "validation_mismatched": [row, row]})
    task = load("mnli", tmp_path)
    assert task.train[0].label == "contradiction" in task.spec.labels
    assert task.train[0].texts == ("It rains.", "It is dry.")
    assert {name: len(examples) for name, examples in (task.dev | task.test).items()} == {
        "dev_matched": 1, "dev_mismatched": 2, "test_matched": 1, "test_mismatched": 1,
        "diagnostic": 1}
    row = {"sentence1": "A dog.", "sentence2": "A cat.", "label": 2.5, "idx": 0}
    glue(tmp_path, "stsb", ["sentence1", "sentence2"], None,
         dict.fromkeys(("train", "validation", "test"), [row]))
    assert load("stsb", tmp_path).train[0].label == 2.5


def test_questions(tmp_path):
    answers = tfds.features.Sequence({"text": TEXT, "answer_start": np.int32})
    features = {"id": TEXT, "title": TEXT, "context": TEXT, "question": TEXT, "answers": answers}
    row = {"id": "q1", "title": "Bowl", "context": "So Ünal won.", "question": "Who?",
           "answers": {"text": ["Ünal", "Ü"], "answer_start": [3, 3]}}
    none = {**row, "id": "q2", "answers": {"text": [], "answer_start": []}}
    build(tmp_path, "squad", "v1.1", "3.0.0", features, {"train": [row], "validation": [row]})
    build(tmp_path, "squad", "v2.0", "3.0.0",
          {**features, "is_impossible": np.bool_, "plausible_answers": answers},
          {split: [{**part, "is_impossible": part is none, "plausible_answers": row["answers"]}
                   for part in (row, none)] for split in ("train", "validation")})
    first = load("squad", tmp_path).train[0]
    assert (first.key, first.context, first.span, first.gold) == (
        "q1", "So Ünal won.", (3, 7), ("Ünal", "Ü"))
    second = load("squad2", tmp_path).dev["dev"][1]
    assert second.is_impossible and (second.span, second.gold) == (None, ())


def test_entities(tmp_path):
    names = ["O", "B-PER", "I-PER"]
    features = {"tokens": tfds.features.Sequence(TEXT),
                "ner": tfds.features.Sequence(tfds.features.ClassLabel(names=names))}
    row = {"tokens": ["Ada", "Lovelace", "wrote"], "ner": ["B-PER", "I-PER", "O"]}
    build(tmp_path, "conll2003", "conll2003", "1.0.0", features,
          {split: [row] for split in ("train", "dev", "test")})
    task = load("ner", tmp_path)
    assert task.train[0].words == ("Ada", "Lovelace", "wrote")
    assert task.train[0].tags == ("B-PER", "I-PER", "O")
    assert list(task.dev) == ["valid", "test"]
    assert task.spec.labels == ("B-PER", "I-PER", "O")


@pytest.mark.parametrize(("name", "message"), [
    ("chunk", "cola, .*ner.*--task=chunk.*--data_dir: .*https://"),
    ("tagging", "--data_dir: --train")])
def test_an_unknown_task_is_told_where_its_files_are(tmp_path, name, message):
    with refused(message):
        load(name, tmp_path)
    with refused("--dev names a file"):
        registry.load(name, tmp_path, Files(dev=[tmp_path]), from_tfds=True)


def test_without_a_network_one_line_comes_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(tfds_source, "SECONDS", 0.3)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        proxy.listen()
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        began = time.monotonic()
        with refused("https://.*timed out.*--data_dir"):
            load("cola", tmp_path)
    assert time.monotonic() - began < 15


def test_minimal_pairs(tmp_path, monkeypatch):
    texts, flags = ("field", "linguistics_term", "UID"), (
        "simple_LM_method", "one_prefix_method", "two_prefix_method", "lexically_identical")
    features = {"sentence_good": TEXT, "sentence_bad": TEXT, "pair_id": np.int32,
                **dict.fromkeys(texts, TEXT), **dict.fromkeys(flags, np.bool_)}
    for name, good in (("transitive", "She runs."), ("wh_island", "He runs.")):
        row = {"sentence_good": good, "sentence_bad": "Runs.", "pair_id": 0,
               **dict.fromkeys(texts, "syntax"), **dict.fromkeys(flags, True)}
        build(tmp_path, "blimp", name, "0.1.0", features, {"train": [row, row]})
    configs = tfds.builder_cls("blimp").builder_configs
    assert len(configs) == 67
    monkeypatch.setattr(tfds.builder_cls("blimp"), "builder_configs", {
        name: configs[name] for name in ("wh_island", "transitive")})
    assert list(tfds_source.read_blimp(tmp_path).items()) == [
        ("transitive", [("She runs.", "Runs.")] * 2), ("wh_island", [("He runs.", "Runs.")] * 2)]
