import doctest

import pytest

import electra_tf
from electra_tf.api import runs
from electra_tf.platform.errors import UserError
from tests import tiny_records, tiny_run


@pytest.fixture(scope="module")
def topics(directory, tmp_path_factory):
    """A classifier that was fine-tuned from Python for one epoch."""
    folder = tmp_path_factory.mktemp("topics")
    for name, repeats in (("train", 12), ("dev", 2)):
        lines = ["text\ttopic", *("the chef ate\tfood", "the piano\tmusic") * repeats]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    results = electra_tf.finetune(
        "classification", init_checkpoint=directory, model_dir=folder / "run",
        train=folder / "train.tsv", dev=folder / "dev.tsv", text_columns=["text"],
        label_column="topic")
    return folder, results


def test_a_classifier_is_fine_tuned_loaded_and_asked(topics):
    folder, results = topics
    assert 0 <= results.best.scores["dev"]["accuracy"] <= 1
    classifier = electra_tf.load_task(folder / "run")
    assert classifier.labels == ("food", "music")
    found = classifier.predict(["the chef ate", "the piano", "the chef ate"])
    assert found[0] == found[2]
    assert {one["prediction"] for one in found} <= {"food", "music"}
    assert classifier.predict([]) == []
    with pytest.raises(UserError, match="reads 1 text"):
        classifier.predict([("one", "two")])
    done = doctest.testmod(runs, extraglobs={"classifier": classifier})
    assert done.attempted >= 1
    assert done.failed == 0


def test_a_pre_training_run_is_no_task(directory):
    with pytest.raises(UserError, match="no fine-tuned model"):
        electra_tf.load_task(directory)


def test_a_run_is_pre_trained_and_loaded(tmp_path):
    records = tmp_path / "records"
    tiny_records.write(records)
    scores = electra_tf.pretrain(
        tiny_run.config(training__num_train_steps=2), data_dir=records, model_dir=tmp_path / "run")
    assert 0 <= scores["discriminator_auc"] <= 1
    assert electra_tf.load(tmp_path / "run").embed(["a"]).shape == (1, 32)
