"""Fine-tuning on lists returns a model that predicts, is scored and saved."""


import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

import electra_tf
from tests.support.refusals import refused

TEXTS = ["the chef ate", "the piano", "first text", "the chef cooked the meal ."]
LABELS = ["person", "thing", "thing", "person"]


@pytest.fixture(scope="module")
def model(directory):
    return electra_tf.finetune("classification", TEXTS * 4, LABELS * 4, init_checkpoint=directory,
                               dev=(TEXTS, LABELS), num_train_epochs=2.0, train_batch_size=8)


def test_settings_by_name_decide_the_run_and_scores_are_those_of_the_predictions(model, tmp_path):
    """The expected scores are scikit-learn's."""
    [trial] = model.results.trials
    assert [epoch.step for epoch in trial.epochs] == [2, 4]  # 16 examples in batches of 8.
    assert model.labels == ("person", "thing")
    predictions = [record["prediction"] for record in model.predict(TEXTS)]
    scores = model.evaluate(TEXTS, LABELS)
    assert scores == {"accuracy": accuracy_score(LABELS, predictions), "f1_macro": pytest.approx(
        f1_score(LABELS, predictions, average="macro"))}
    assert model.results.best.scores["dev"] == pytest.approx(scores)
    (tmp_path / "dev.tsv").write_text("text\tlabel\n" + "".join(
        f"{text}\t{label}\n" for text, label in zip(TEXTS, LABELS, strict=True)))
    assert model.evaluate(tmp_path / "dev.tsv") == model.evaluate(np.array(TEXTS), LABELS)


def test_a_saved_run_is_new_and_replaces_nothing(model, tmp_path):
    (model._run.model_dir / "trackers.json").write_text("{}")
    model.save(tmp_path / "run")
    assert not (tmp_path / "run/trackers.json").exists()  # The copy reports to new runs.
    assert not (tmp_path / "run/trackers.json").exists()  # The copy reports to new runs.
    for save in (model.save, model.save_pretrained):
        with refused("exists already; name a new directory"):
            save(tmp_path / "run")


@pytest.mark.parametrize(("arguments", "words"), [
    ({"train": "a text", "labels": [1]}, "train must be a list of texts"),
    ({"train": TEXTS, "labels": LABELS, "dev": "dev.tsv"}, "must both be files"),
    ({"task": "sst2", "train": TEXTS, "labels": LABELS}, "one of classification, regression"),
    ({"train": "train.tsv", "dev": (TEXTS, LABELS)}, "must both be files"),
    ({"train": TEXTS, "labels": LABELS, "data_dir": "glue"}, "leave it out with data in memory"),
    ({"train": TEXTS, "labels": LABELS, "learning_rte": 1.0}, "Did you mean 'learning_rate'"),
    ({"train": TEXTS, "labels": LABELS, "learning_rate": -1.0}, "optimizer.learning_rate must")])
def test_mistaken_arguments_leave_no_directory(directory, tmp_path, arguments, words):
    with refused(words):
        electra_tf.finetune(**{
            "task": "classification", "init_checkpoint": directory, "model_dir": tmp_path / "run",
            **arguments})
    assert not (tmp_path / "run").exists()


def test_labels_that_a_model_lacks_are_refused_or_counted(model):
    with refused("'cold'"):
        model.evaluate(TEXTS, ["cold"] * 4)
    with pytest.warns(UserWarning, match="1 labels that training never shows"):
        model.evaluate(TEXTS, [*LABELS[:3], "cold"])
