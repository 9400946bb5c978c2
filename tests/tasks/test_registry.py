"""Tasks come by name with all their splits, or one line says what is missing."""

import json

import pytest

from electra_tf.platform.errors import UserError
from electra_tf.tasks import glue, registry
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.registry import Files
from electra_tf.tasks.task import TaskSpec


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def questions(*pairs):
    return json.dumps({"data": [{"paragraphs": [{"context": "Denver won.", "qas": [
        {"id": key, "question": "Who?", "answers": [{"text": "Denver", "answer_start": start}]}
        for key, start in pairs]}]}]})


def test_a_task_of_glue(tmp_path):
    for split in ("train", "dev"):
        write(tmp_path / "SST-2" / f"{split}.tsv", "sentence\tlabel\nfine\t1\n")
    task = registry.load("sst2", tmp_path, Files())
    assert (task.spec.kind, task.spec.labels, task.spec.metrics) == (
        Kind.CLASSIFICATION, ("0", "1"), ("accuracy",))
    assert (len(task.train), list(task.dev), task.test) == (1, ["dev"], {})
    write(tmp_path / "SST-2" / "test.tsv", "index\tsentence\n0\tdull\n")
    assert list(registry.load("sst2", tmp_path, Files()).test) == ["test"]


def test_labels_of_another_file_may_be_numbers_or_words(tmp_path):
    spec = TaskSpec.of_glue(glue.TASKS["sst2"])
    dev = write(tmp_path / "dev.tsv", "sentence\tlabel\nfine\tpositive\ndull\t0\n")
    examples = registry.load_dev(spec, None, Files(dev=dev))["dev"]
    assert [example.label for example in examples] == ["1", "0"]
    bad = write(tmp_path / "bad.tsv", "sentence\tlabel\nfine\tgood\n")
    with pytest.raises(UserError, match="the label 'good' isn't among those"):
        registry.load_dev(spec, None, Files(dev=bad))


def test_questions_by_their_published_names_or_others(tmp_path):
    write(tmp_path / "train-v1.1.json", questions(("a", 0), ("b", 3)))
    dev = write(tmp_path / "other.json", questions(("c", 0)))
    task = registry.load("squad", tmp_path, Files(dev=dev))
    assert [example.key for example in task.train] == ["a"]
    assert [example.key for example in task.dev["dev"]] == ["c"]
    assert task.notes == ["train: answers that don't stand at their offset are left out, in 1 "
                          "questions such as 'b'"]


def test_questions_whose_answers_all_stand_elsewhere_are_refused(tmp_path):
    for train, dev, message in ((3, 0, "train.json: .*; there is nothing to learn"),
                                (0, 3, "dev.json: .*; there is nothing to score")):
        files = Files(train=write(tmp_path / "train.json", questions(("a", train))),
                      dev=write(tmp_path / "dev.json", questions(("b", dev))))
        with pytest.raises(UserError, match=message):
            registry.load("question_answering", None, files)


def test_chunks_and_entities(tmp_path):
    write(tmp_path / "train.txt", "He PRP B-NP\n")
    write(tmp_path / "test.txt", "Runs VBZ B-VP\n")
    task = registry.load("chunk", tmp_path, Files())
    assert (task.spec.kind, task.spec.labels) == (Kind.TAGGING, ("B-NP", "B-VP"))
    assert list(task.dev) == ["test"]
    write(tmp_path / "valid.txt", "It PRP O\n")
    assert list(registry.load("ner", tmp_path, Files()).dev) == ["valid", "test"]


@pytest.mark.parametrize(("name", "own", "message"), [
    ("sst3", {}, "--task must be one of glue, cola, sst2, .*searchqa, .*, chunk, ner, clas"),
    ("cola", {}, "--data_dir is needed for --task=cola"),
    ("classification", {}, "--train is needed for --task=classification"),
    ("regression", {"train": "a.csv"}, "must be a number. Received: 'no'"),
    ("classification", {"train": "one.csv", "dev": "one.csv"}, "has one label only, 'no'"),
    ("classification", {"train": "a.csv", "dev": "one.csv"}, None),
    ("classification", {"train": "a.csv", "dev": "other.csv"}, "the label 'maybe' isn't among"),
])
def test_what_is_missing_or_wrong_is_one_line(tmp_path, name, own, message):
    write(tmp_path / "a.csv", "text,label\nx,no\ny,yes\n")
    write(tmp_path / "one.csv", "text,label\nx,no\n")
    write(tmp_path / "other.csv", "text,label\nx,maybe\n")
    files = Files(**{split: tmp_path / path for split, path in own.items()})
    if message is None:
        assert registry.load(name, None, files).spec.labels == ("no", "yes")
        return
    with pytest.raises(UserError, match=message):
        registry.load(name, None, files)
