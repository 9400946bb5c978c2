"""What is written for TensorFlow Lite says what the network says, or isn't written."""

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from electra_tf.export import tflite
from electra_tf.export.servable import TOKEN_INPUTS
from electra_tf.platform.errors import UserError
from electra_tf.tasks.task import Kind
from electra_tf.text.rows import Tokens
from tests.export.served_models import Example, example

IDS = np.array([[2, 5, 6, 7, 3, 9, 10, 3], [2, 8, 3, 12, 13, 14, 5, 3], [2, 9, 3, 5, 3, 0, 0, 0]],
               np.int32)
SEGMENTS = np.array([[0] * 5 + [1] * 3, [0] * 3 + [1] * 5, [0] * 3 + [1] * 2 + [0] * 3], np.int32)
MASK = (IDS > 0).astype(np.int32)
TOKENS = (IDS, SEGMENTS, MASK)


def export(model, path, quantization="none", sequence_length=None):
    tflite.export(model.servable, path, tflite.Quantization(quantization), sequence_length)
    return path


def ask(path, tokens):
    """Asks as a user's program would."""
    runner = Interpreter(str(path)).get_signature_runner("token_ids")
    return runner(**dict(zip(TOKEN_INPUTS, tokens, strict=True)))


def expected(model):
    """Returns what the SavedModel's graph computes."""
    scores = model.served().score(Tokens(*map(tf.constant, TOKENS[:2]), tf.constant(MASK > 0)))
    return {name: value.numpy() for name, value in scores.items()}


@pytest.fixture(scope="module")
def classifier():
    return example(Kind.CLASSIFICATION)


@pytest.fixture(scope="module")
def exported(classifier, tmp_path_factory):
    return export(classifier, tmp_path_factory.mktemp("lite") / "classifier.tflite")


def test_classes_of_several_rows_of_any_length(classifier, exported):
    found, wanted = ask(exported, TOKENS), expected(classifier)
    assert found.keys() == wanted.keys() == {"logits", "probabilities"}
    np.testing.assert_allclose(found["logits"], wanted["logits"], atol=1e-5)
    shorter = ask(exported, [array[2:, :5] for array in TOKENS])
    np.testing.assert_allclose(shorter["probabilities"], wanted["probabilities"][2:], atol=1e-5)


def test_numbers_and_tags(tmp_path):
    found = ask(export(example(Kind.REGRESSION), tmp_path / "numbers.tflite"), TOKENS)
    np.testing.assert_allclose(
        found["score"], expected(example(Kind.REGRESSION))["score"], atol=1e-5)
    found = ask(export(example(Kind.TAGGING), tmp_path / "tags.tflite"), TOKENS)
    np.testing.assert_allclose(
        found["probabilities"][MASK > 0],
        expected(example(Kind.TAGGING))["probabilities"][MASK > 0], atol=1e-5)


@pytest.mark.parametrize("answerability", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_answers_with_all_their_beams(tmp_path, answerability):
    model = example(Kind.QUESTION_ANSWERING, task__answerability=answerability,
                    task__ends_given_starts=answerability)
    found, wanted = ask(export(model, tmp_path / "answers.tflite"), TOKENS), expected(model)
    assert found.keys() == wanted.keys()
    assert ("impossible" in found) == answerability
    for row, count in enumerate(1 + SEGMENTS.sum(axis=1)):
        for name in ("start_index", "end_index"):
            # [CLS] and the context; the order of what stands elsewhere is arbitrary.
            inside = (row, *[slice(count)] * (found[name].ndim - 1))
            np.testing.assert_array_equal(found[name][inside], wanted[name][inside])


def test_one_row_of_a_fixed_length_is_padded_by_the_caller(classifier, tmp_path, capsys):
    path = export(classifier, tmp_path / "fixed.tflite", sequence_length=10)
    assert "MB, takes one row of 10 tokens\n" in capsys.readouterr().out
    shapes = {tuple(detail["shape_signature"]) for detail in Interpreter(
        str(path)).get_signature_runner().get_input_details().values()}
    assert shapes == {(1, 10)}
    found = ask(path, [np.pad(array[2:], [(0, 0), (0, 2)]) for array in TOKENS])
    np.testing.assert_allclose(
        found["probabilities"], expected(classifier)["probabilities"][2:], atol=1e-5)


@pytest.mark.slow
def test_quantized_weights_are_smaller(tmp_path):
    # Tensors of fewer than 1,024 weights stay as they are.
    model = Example(Kind.CLASSIFICATION, model__hidden_size=64, model__intermediate_size=128)
    exact = export(model, tmp_path / "exact.tflite")
    for quantization, share in (("float16", 0.7), ("dynamic_int8", 0.8)):
        small = export(model, tmp_path / f"{quantization}.tflite", quantization)
        assert small.stat().st_size < share * exact.stat().st_size


def test_a_difference_or_too_long_a_row_leaves_nothing(classifier, tmp_path, monkeypatch):
    run_file = tflite._run_file
    monkeypatch.setattr(tflite, "_run_file", lambda *arguments: {
        name: value + 0.001 for name, value in run_file(*arguments).items()})
    for length, words in ((None, "away from that of the trained network.* nothing was"),
                          (17, "--sequence_length=17 is more than the network's 16")):
        with pytest.raises(UserError, match=words):
            export(classifier, tmp_path / "model.tflite", sequence_length=length)
    assert list(tmp_path.iterdir()) == []


def test_beams_in_another_order_are_the_same_answers_and_nan_is_a_difference():
    def beams(order):
        starts, ends = np.log([[0.5, 0.5]]), np.log([[[0.9, 0.1], [0.2, 0.8]]])
        return {"start_log_probs": starts[:, order], "start_index": np.array([[1, 2]])[:, order],
                "end_log_probs": ends[:, order],
                "end_index": np.array([[[1, 2], [1, 2]]])[:, order]}

    tokens = [np.ones([1, 3], np.int32)] * 3
    assert tflite.compare(
        beams([0, 1]), lambda inputs: beams([1, 0]), tokens, 1e-4) == 0.0
    wrong = beams([0, 1]) | {"start_index": np.array([[2, 1]])}
    with pytest.raises(UserError, match="spans is 3.5e-01 away"):
        tflite.compare(wrong, lambda inputs: beams([0, 1]), tokens, 1e-4)
    found = {"score": np.array([np.nan], np.float32)}
    with pytest.raises(UserError, match="score is nan away"):
        tflite.compare(
            found, lambda inputs: {"score": np.zeros([1], np.float32)}, tokens, 0.5)
