import copy
import pickle
import shutil

import pandas
import pytest

import electra_tf
from electra_tf.finetuning.run import prepare_trained
from electra_tf.tasks.task import Kind
from tests.support.refusals import refused


@pytest.mark.parametrize(("kind", "examples", "named"), [
    (Kind.CLASSIFICATION, "a text", "examples must be a list"),
    (Kind.CLASSIFICATION, [("one", "two")], "reads 1 text"),
    (Kind.QUESTION_ANSWERING, (["Who?", "What?"], ["a text", "the text"]), "ambiguous"),
    (Kind.QUESTION_ANSWERING, [pandas.Series(["Who?", "What?"]),
                               pandas.Series(["a text", "the text"])], "a list of columns is"),
    (Kind.TAGGING, [["the", None]], "must be a string"),
    (Kind.CLASSIFICATION, ["a", None], "examples:2 must be a string. Received: None"),
    (Kind.QUESTION_ANSWERING, ["the chef"], "reads pairs of a question and its context")])
def test_other_examples_are_refused_in_one_line(task_directories, kind, examples, named):
    with refused(named):
        electra_tf.load_task(task_directories[kind]).predict(examples)


@pytest.mark.parametrize(("kind", "columns", "example"), [
    (Kind.CLASSIFICATION, {"label": "negative", "text": "the chef"}, "the chef"),
    (Kind.TAGGING, {"tags": ["O", "O"], "words": ["the", "chef"]}, ["the", "chef"]),
    (Kind.QUESTION_ANSWERING, {"context": "the chef ate", "question": "the meal"},
     ("the meal", "the chef ate"))])
def test_columns_of_a_data_frame_are_read_by_name(task_directories, kind, columns, example):
    model, frame = electra_tf.load_task(task_directories[kind]), pandas.DataFrame([columns])
    if kind is Kind.TAGGING:
        frame = frame.rename(columns={"words": model._run.spec.text_columns[0]})
    assert model.predict(frame) == model.predict([example])
    with refused("examples have no column '.*'. There are: a, b; rename columns"):
        model.predict(frame.set_axis(["a", "b"], axis=1))


def test_a_fine_tuned_run_is_an_encoder_and_a_pre_trained_one_no_task(
        task_directories, directory, pair):
    electra = electra_tf.load(task_directories[Kind.CLASSIFICATION])
    assert electra.embed(["the chef"]).shape == (1, 32)
    for method in (electra.detect, electra.fill):
        with refused("has no"):
            method("the [MASK]")
    for path, words in ((directory, "no fine-tuned model"), (pair, "is not fine-tuned"),
                        (directory / "nowhere", "holds no checkpoint")):
        with refused(words):
            electra_tf.load_task(path)


def test_a_model_in_hugging_faces_format_may_read_pairs(task_directories, tmp_path):
    classifier = electra_tf.load_task(task_directories[Kind.CLASSIFICATION])
    classifier.save_pretrained(tmp_path / "hf")
    again = electra_tf.load_task(str(tmp_path / "hf"))
    assert again.evaluate(["the chef"], ["positive"]).keys() == {"accuracy"}
    pairs = electra_tf.load_task(tmp_path / "hf", text_columns=["a", "b"])
    assert pairs.predict([("the chef", "ate")])[0]["texts"] == ["the chef", "ate"]
    assert pairs.evaluate([("the chef", "ate")], ["positive"]).keys() == {"accuracy"}
    with refused("convert_checkpoint --from=MODEL .* --text_columns=text,text_pair"):
        again.predict([("the chef", "ate")])
    with refused("settings.json does not exist: .*convert_checkpoint --from=.*/hf --to=hf_run"):
        prepare_trained(tmp_path / "hf", {})


@pytest.mark.parametrize("copied", [
    lambda model: pickle.loads(pickle.dumps(model)), copy.deepcopy])
def test_a_pickled_model_predicts_the_same_without_the_run(task_directories, tmp_path, copied):
    directory = shutil.copytree(task_directories[Kind.CLASSIFICATION], tmp_path / "run")
    model = electra_tf.load_task(directory)
    expected, other = model.predict(["the chef ate"]), copied(model)
    shutil.rmtree(directory)
    assert other.predict(["the chef ate"]) == expected
    assert (other.name, other.labels, other.results) == (model.name, model.labels, model.results)


def test_settings_of_initial_weights_are_refused_beside_trained_ones(directory):
    with refused("initialization are for random initial weights, and .* has trained ones"):
        electra_tf.finetune("classification", ["a", "b"], ["x", "y"], init_checkpoint=directory,
                            scheme="adjacent")
