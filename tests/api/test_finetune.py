"""Fine-tuning on lists returns a model that predicts, is scored and saved."""

import pathlib

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

import electra_tf
from electra_tf.core.errors import UserError
from electra_tf.formats import pretrained
from tests.support import tiny_networks
from tests.support.refusals import refused

TEXTS = ["the chef ate", "the piano", "first text", "the chef cooked the meal ."]
LABELS = ["person", "thing", "thing", "person"]


@pytest.fixture(scope="module")
def model(directory):
    return electra_tf.finetune("classification", TEXTS * 4, LABELS * 4, init_checkpoint=directory,
                               dev=(TEXTS, LABELS), num_train_epochs=2.0, train_batch_size=8)


def test_settings_by_name_decide_the_run(model):
    [trial] = model.results.trials
    assert [epoch.step for epoch in trial.epochs] == [2, 4]  # 16 examples in batches of 8.
    assert model.labels == ("person", "thing")


def test_scores_are_those_of_the_predictions(model):
    """The expected scores are scikit-learn's."""
    predictions = [record["prediction"] for record in model.predict(TEXTS)]
    scores = model.evaluate(TEXTS, LABELS)
    assert scores == {"accuracy": accuracy_score(LABELS, predictions), "f1_macro": pytest.approx(
        f1_score(LABELS, predictions, average="macro"))}
    assert model.results.best.scores["dev"] == pytest.approx(scores)


def test_scores_of_a_file_are_those_of_its_rows(model, tmp_path):
    (tmp_path / "dev.tsv").write_text("text\tlabel\n" + "".join(
        f"{text}\t{label}\n" for text, label in zip(TEXTS, LABELS, strict=True)))
    assert model.evaluate(tmp_path / "dev.tsv") == model.evaluate(np.array(TEXTS), LABELS)


def test_a_saved_run_and_its_conversion_have_the_model(model, tmp_path):
    (model._run.model_dir / "trackers.json").write_text("{}")
    model.save(tmp_path / "run")
    assert not (tmp_path / "run/trackers.json").exists()  # The copy reports to new runs.
    model.save_pretrained(tmp_path / "hugging_face")
    loaded = electra_tf.load_task(tmp_path / "run")
    assert loaded.predict(TEXTS) == model.predict(TEXTS) and loaded.results == model.results
    tiny_networks.require_equal_weights(*(
        tiny_networks.without(pretrained.read(tmp_path / name), "head/")
        for name in ("run", "hugging_face")))
    for save in (model.save, model.save_pretrained):
        with refused("exists already; name a new directory"):
            save(tmp_path / "run")


@pytest.mark.parametrize(("task", "train", "labels", "example", "metric"), [
    ("regression", TEXTS, [1.0, 2.0, 3.0, 4.0], "the chef", "pearson"),
    ("multilabel", TEXTS, [["a"], ["b"], [], ["a", "b"]], "the chef", "f1_micro"),
    ("tagging", [text.split() for text in TEXTS], [["O"] * (len(text.split()) - 1) + ["B-X"]
                                                   for text in TEXTS], "the chef", "f1"),
    ("question_answering", [
        {"question": "who", "context": text, "answers": {"text": ["the"], "answer_start": [0]}}
        for text in (TEXTS[0], TEXTS[1], TEXTS[3])], None, ("who", "the chef ate"), "f1"),
    ("sentence_embeddings", [(text, text) for text in TEXTS], None, "the chef", None)])
def test_every_kind_of_task_is_fine_tuned_from_lists(
        directory, task, train, labels, example, metric):
    dev = {"dev": train if labels is None else (train, labels)} if metric else {}
    model = electra_tf.finetune(task, train, labels, init_checkpoint=directory, **dev,
                                max_seq_length=16, num_train_epochs=1.0, train_batch_size=4,
                                **({"max_query_length": 4} if task.startswith("question") else {}))
    [record] = model.predict([example])
    assert "prediction" in record or "embedding" in record
    assert metric is None or metric in model.results.best.scores["dev"]


def test_a_directory_that_nobody_named_goes_with_the_model(directory):
    model = electra_tf.finetune("regression", TEXTS, [0.5, 1.5, 2.5, 3.5], dev=(TEXTS, range(4)),
                                init_checkpoint=directory, num_train_epochs=1.0)
    run = pathlib.Path(model._temporary.name)
    assert (run / "results.json").exists()
    del model
    assert not run.exists()


@pytest.mark.parametrize(("arguments", "words"), [
    ({"train": "a text", "labels": [1]}, "train must be a list of texts"),
    ({"train": TEXTS, "labels": LABELS, "dev": "dev.tsv"}, "must both be files"),
    ({"task": "sst2", "train": TEXTS, "labels": LABELS}, "one of classification, regression"),
    ({"train": "train.tsv", "dev": (TEXTS, LABELS)}, "must both be files"),
    ({"train": TEXTS, "labels": LABELS, "data_dir": "glue"}, "leave it out with data in memory"),
    ({"train": TEXTS, "labels": LABELS, "learning_rte": 1.0}, "Did you mean 'learning_rate'"),
    ({"train": TEXTS, "labels": LABELS, "learning_rate": -1.0}, "optimizer.learning_rate must"),
])
def test_mistaken_arguments_leave_no_directory(directory, tmp_path, arguments, words):
    with refused(words):
        electra_tf.finetune(**{
            "task": "classification", "init_checkpoint": directory, "model_dir": tmp_path / "run",
            **arguments})
    assert not (tmp_path / "run").exists()


def test_labels_that_a_model_lacks_are_refused_or_counted(model):
    with pytest.raises(UserError, match="the label 'cold' isn't among"):
        model.evaluate(TEXTS, ["cold"] * 4)
    with pytest.warns(UserWarning, match="1 labels that training never shows"):
        model.evaluate(TEXTS, [*LABELS[:3], "cold"])
