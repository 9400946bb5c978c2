"""Tasks come by name with all their splits and the paper's recipe."""

import json

import pytest

from electra_tf.config.finetuning import FinetuningConfig
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import SIZES
from electra_tf.tasks import glue, registry
from electra_tf.tasks.files import Files
from electra_tf.tasks.registry import KINDS, recipe
from electra_tf.tasks.task import Kind
from tests.support.refusals import refused
from tests.support.text_files import write


@pytest.mark.parametrize(("size", "rate", "decay"), [
    ("small", 3e-4, 0.8), ("base", 1e-4, 0.8), ("large", 5e-5, 0.9), ("tiny", 3e-4, 0.8)])
def test_rates_go_by_the_size_of_the_encoder(size, rate, decay):
    optimizer = recipe("sst2", SIZES[size].model).optimizer
    assert (optimizer.learning_rate, optimizer.layerwise_decay) == (rate, decay)
    assert not optimizer.layerwise_decay_skips_one
    length = recipe("squad", SIZES[size].model).task.max_seq_length
    assert length == (128 if size == "tiny" else 512)  # An encoder of few positions.


@pytest.mark.parametrize(("task", "epochs", "swaps", "length", "answerability"), [
    ("cola", 3, False, 128, True), ("mrpc", 3, True, 128, True), ("rte", 10, False, 128, True),
    ("stsb", 10, True, 128, True), ("chunk", 3, False, 128, True), ("squad", 2, False, 512, False),
    ("question_answering", 2, False, 512, True), ("searchqa", 2, False, 512, False)])
def test_settings_go_by_the_task(task, epochs, swaps, length, answerability):
    config = recipe(task, SIZES["small"].model)
    assert config.training.num_train_epochs == epochs
    assert config.training.train_batch_size == 32
    assert (config.task.swap_pairs, config.task.max_seq_length, config.task.answerability) == (
        swaps, length, answerability)


def test_steps_cover_all_examples_and_a_tenth_of_them_warm_up():
    config = override(FinetuningConfig(), {"training.num_train_epochs": 2.5})
    assert config.num_train_steps(65) == 7  # 3 batches an epoch: 7.5 steps, as Google's code cuts.
    assert config.num_train_steps(1) == 2
    assert config.optimizer.warmup(1234) == pytest.approx(123.4)
    assert config.optimizer.warmup(7) == pytest.approx(0.7)
    assert override(config, {"optimizer.warmup_steps": 7}).optimizer.warmup(1234) == 7


def questions(*pairs):
    return json.dumps({"data": [{"paragraphs": [{"context": "Denver won.", "qas": [
        {"id": key, "question": "Who?", "answers": [{"text": "Denver", "answer_start": start}]}
        for key, start in pairs]}]}]})


def test_another_file_may_have_other_columns_and_label_words(tmp_path):
    spec = glue.TASKS["sst2"].spec
    dev = write(tmp_path / "dev.tsv", "sentence\tlabel\nfine\tpositive\ndull\t0\n")
    examples = registry.load_dev(spec, None, Files(dev=[dev])).dev["dev"]
    assert [example.label for example in examples] == ["1", "0"]
    other = write(tmp_path / "other.tsv", "body\ty\nfine\tgood\n")
    with refused("label 'good'"):
        registry.load_dev(spec, None, Files(dev=[other], text_columns=("body",), label_column="y"))
    with refused("--text_columns=a,b: the task sst2 reads 1"):
        Files(text_columns=("a", "b")).select(spec)


def test_questions_by_their_published_names_or_others(tmp_path):
    write(tmp_path / "train-v1.1.json", questions(("a", 0), ("b", 3)))
    dev = write(tmp_path / "other.json", questions(("c", 3)))
    task = registry.load("squad", tmp_path, Files(dev=[dev]))
    assert [example.key for example in task.train] == ["a"]
    assert [example.key for example in task.dev["dev"]] == ["c"]
    assert "1 questions such as 'b' have no answer" in task.notes[0]
    write(tmp_path / "train-v1.1.json", questions(("b", 3)))
    with refused("--train: no answer"):
        registry.load("squad", tmp_path, Files(dev=[dev]))


def test_chunks_and_entities_have_the_tags_of_all_splits(tmp_path):
    write(tmp_path / "train.txt", "He PRP B-NP\n. . O\n")
    path = write(tmp_path / "test.txt", "Runs VBZ B-VP\n. . O\n")
    task = registry.load("chunk", tmp_path, Files())
    assert (task.spec.kind, task.spec.labels) == (Kind.TAGGING, ("B-NP", "B-VP", "O"))
    assert list(task.dev) == ["test"] and task.notes[-1] == (
        f"{path}: 1 labels that training never shows count as missed: B-VP (1)")
    write(tmp_path / "valid.txt", "It PRP O\n")
    assert list(registry.load("ner", tmp_path, Files()).dev) == ["valid", "test"]


def test_labels_that_training_never_shows_are_missed_and_noted(tmp_path):
    train = write(tmp_path / "a.csv", "text,label\nx,no\ny,yes\nz,no\n")
    dev = write(tmp_path / "b.csv", "text,label\nx,no\ny,maybe\nz,maybe\n")
    task = registry.load("classification", None, Files(train=[train], dev=[dev]))
    assert task.spec.labels == ("no", "yes")
    note = f"{dev}: 2 labels that training never shows count as missed: maybe (2)"
    assert task.notes[:1] == registry.load_dev(task.spec, None, Files(dev=[dev])).notes == [note]
    kind = KINDS[Kind.CLASSIFICATION]
    # "no" is right of 3; F1 is 1 / 2 for "no", and 0 for "maybe".
    assert kind.baseline(task.spec, task.train, task.dev["dev"]) == (
        "always no", pytest.approx({"accuracy": 1 / 3, "f1_macro": 1 / 4}))


def test_metrics_of_a_tagger_go_by_its_tags(tmp_path):
    for tags, metrics in (("B-X O", ("f1", "precision", "recall", "accuracy")),
                          ("NOUN VERB", ("accuracy", "f1_macro"))):
        first, second = tags.split()
        path = write(tmp_path / "a.txt", f"a {first}\nb {second}\n")
        task = registry.load("tagging", None, Files(train=[path], dev=[path]))
        assert task.spec.metrics == metrics
        assert KINDS[Kind.TAGGING].build_spec("tagging", task.spec.labels).metrics == metrics


def test_names_on_the_command_line_are_glue_s_tasks_or_one_other():
    assert registry.resolve(["wnli", "glue"]) == ("wnli", *list(glue.TASKS)[:-1])
    assert registry.resolve(["squad", "squad"]) == ("squad",)
    with refused(r"--task .*glue, cola, .*'mrcp'\. Did you mean 'mrpc'"):
        registry.resolve(["cola", "mrcp"])
    with refused("only GLUE's tasks"):
        registry.resolve(["cola", "squad"])


@pytest.mark.parametrize(("name", "user_files", "message"), [
    ("squadd", {}, r"cola, .*ner, clas.*: 'squadd'\. Did you mean 'squad'"),
    ("chunk", {"train": "a.csv"}, "--data_dir; --train"),
    ("regression", {"train": "a.csv"}, "must be a number.* 'no'"),
    ("classification", {"train": "one.csv", "dev": "one.csv"}, "one label only, 'no'"),
    ("classification", {"train": "a.csv", "dev": "other.csv"}, "the label 'maybe'"),
    ("squad", {"label_column": "answer"}, "--label_column .*leave it")])
def test_what_is_missing_or_wrong_is_one_line(tmp_path, name, user_files, message):
    for file, labels in (("a", ("no", "yes")), ("one", ("no", "no")), ("other", ("maybe",))):
        write(tmp_path / f"{file}.csv", "text,label\n" + "".join(map("x,{}\n".format, labels)))
    files = Files(**{field: value if "_column" in field else [tmp_path / value]
                     for field, value in user_files.items()})
    with refused(message):
        registry.load(name, None, files)
