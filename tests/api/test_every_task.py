"""Every kind of task goes from lists to a model that predicts the same wherever it is served."""

import pathlib

import numpy as np
import pytest
import tensorflow as tf

import electra_tf
from electra_tf.export import servable
from electra_tf.formats import pretrained
from tests.support.refusals import refused

TEXTS = ["the chef ate", "the piano", "first text", "the chef cooked the meal ."]
SPANS = [{"question": "who", "context": text, "answers": {"text": ["the"], "answer_start": [0]}}
         for text in (TEXTS[0], TEXTS[1], TEXTS[3])]
SPLIT = [text.split() for text in TEXTS]
TASKS = {  # Texts and labels, an example and its columns, the first metric, and what is served.
    "classification": (TEXTS, ["a", "b", "b", "a"], "the chef", ["the chef"], "accuracy", "label"),
    "regression": (TEXTS, [1.0, 2.0, 3.0, 4.0], "the chef", ["the chef"], "pearson", "score"),
    "multilabel": (TEXTS, [["a"], ["b"], [], ["a", "b"]], "the chef", ["the chef"], "f1_micro",
                   "prediction"),
    "tagging": (SPLIT, [["O"] * (len(words) - 1) + ["B-X"] for words in SPLIT], ["the", "chef"],
                ["the chef"], "f1", "tags"),
    "question_answering": (SPANS, None, ("who", "the chef ate"), ["who", "the chef ate"], "f1",
                           "answer"),
    "sentence_embeddings": ([(text, text) for text in TEXTS], None, "the chef", ["the chef"], None,
                            "embedding")}
HEADS = {"question_answering": {"max_query_length": 4, "ends_given_starts": False,
                                "answerability": False}}


@pytest.mark.filterwarnings("ignore:examples. tags in IOB")
@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_learned_scored_saved_converted_and_served(directory, tmp_path, task):
    train, labels, example, columns, metric, field = TASKS[task]
    data = train if labels is None else (train, labels)
    model = electra_tf.finetune(
        task, train, labels, init_checkpoint=directory, max_seq_length=16, num_train_epochs=1.0,
        train_batch_size=4, **HEADS.get(task, {}), **({"dev": data} if metric else {}))
    [record] = model.predict([example])
    if metric:
        scores = model.evaluate(train, labels) if labels else model.evaluate(train)
        assert scores[metric] == pytest.approx(
            model.results.best.scores["dev"][metric], nan_ok=True)
    # A saved run and its conversion have the model.
    model.save(tmp_path / "run")
    model.save_pretrained(tmp_path / "hf")
    loaded, converted = (electra_tf.load_task(tmp_path / name) for name in ("run", "hf"))
    assert loaded.results == model.results and converted.results is None
    prediction = record["prediction"]
    for other in (loaded, converted):
        require_equal(other.predict([example])[0]["prediction"], prediction)
    # An export answers what the model predicts.
    answers = servable.build(pretrained.read(tmp_path / "run")).answer(
        *(tf.constant([column]) for column in columns))
    answer = answers[field][0].numpy()
    if answer.dtype == object if isinstance(answer, np.ndarray) else isinstance(answer, bytes):
        answer = answer.decode() if isinstance(answer, bytes) else [
            part.decode() for part in answer if part]
    require_equal(answer, prediction)
    # The directory that nobody named goes with the model.
    run = pathlib.Path(model._temporary.name)
    assert (run / "results.json").exists()
    del model
    assert not run.exists()


def require_equal(value, expected):
    if isinstance(expected, str | list) and not isinstance(value, np.ndarray):
        assert value == expected
    else:
        np.testing.assert_allclose(value, expected, atol=1e-4)


def test_saving_replaces_no_directory(task_directories, tmp_path):
    model = electra_tf.load_task(task_directories["classification"])
    for save in (model.save, model.save_pretrained):
        with refused("exists already; name a new directory"):
            save(tmp_path)


def test_a_teacher_labels_further_texts(directory, task_directories, capsys):
    teacher = task_directories["classification"]
    arguments = {"init_checkpoint": directory, "dev": (TEXTS, ["negative", "positive"] * 2),
                 "num_train_epochs": 1.0, "train_batch_size": 8}
    electra_tf.finetune("classification", TEXTS, ["positive", "negative"] * 2, teacher=teacher,
                        unlabelled=["the chef"], distillation_weight=0.9, **arguments)
    printed = capsys.readouterr().out
    assert "train 4 and 1 unlabelled as 5 rows" in printed
    assert f"\nteacher  {teacher}" in printed and ": labels 5 rows; dev: accuracy" in printed
    for needy in ({"distillation_weight": 0.9}, {"unlabelled": ["the chef"]}):
        with refused(f"{min(needy)} needs"):
            electra_tf.finetune("classification", *arguments["dev"], **arguments, **needy)


LABELS = ["person", "thing", "thing", "person"]


@pytest.mark.parametrize(("arguments", "words"), [
    ({"train": "a text", "labels": [1]}, "train must be a list of texts"),
    ({"train": TEXTS, "labels": LABELS, "dev": "dev.tsv"}, "must both be files"),
    ({"train": TEXTS, "labels": LABELS, "data_dir": "glue"}, "leave it out with data in memory"),
    ({"train": TEXTS, "labels": LABELS, "learning_rte": 1.0}, "Did you mean 'learning_rate'"),
    ({"train": TEXTS, "labels": LABELS, "learning_rate": -1.0}, "optimizer.learning_rate must")])
def test_mistaken_arguments_leave_no_directory(directory, tmp_path, arguments, words):
    with refused(words):
        electra_tf.finetune(**{
            "task": "classification", "init_checkpoint": directory, "model_dir": tmp_path / "run",
            **arguments})
    assert not (tmp_path / "run").exists()
