"""A file for TensorFlow Lite computes what the network does, or it isn't written."""

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from electra_tf.export import tflite
from electra_tf.export.comparison import Quantization, compare
from electra_tf.export.servable import TOKEN_INPUTS
from electra_tf.tasks.task import Kind
from electra_tf.text.rows import Tokens
from tests.export.served_models import Example, example
from tests.support.refusals import refused

IDS = np.array([[2, 5, 6, 7, 3, 9, 10, 3], [2, 8, 3, 12, 13, 14, 5, 3], [2, 9, 3, 5, 3, 0, 0, 0]],
               np.int32)
SEGMENTS = np.array([[0] * 5 + [1] * 3, [0] * 3 + [1] * 5, [0] * 3 + [1] * 2 + [0] * 3], np.int32)
MASK = (IDS > 0).astype(np.int32)
TOKENS = (IDS, SEGMENTS, MASK)


def export(model, path, quantization="none", sequence_length=None):
    tflite.export(model.servable, path, Quantization(quantization), sequence_length)
    return path


def run(path, tokens):
    """Runs a file as a user's program does."""
    runner = Interpreter(str(path)).get_signature_runner("token_ids")
    return runner(**dict(zip(TOKEN_INPUTS, tokens, strict=True)))


def expected(model):
    """Returns what the SavedModel's graph computes."""
    scores = model.served().score(Tokens(*map(tf.constant, TOKENS[:2]), tf.constant(MASK > 0)))
    return {name: value.numpy() for name, value in scores.items()}


@pytest.mark.parametrize("kind", [Kind.CLASSIFICATION, Kind.REGRESSION, Kind.TAGGING])
def test_outputs_of_rows_of_any_length_are_the_networks(kind, tmp_path):
    path, outputs = export(example(kind), tmp_path / "model.tflite"), expected(example(kind))
    for rows, length in ((slice(0, 3), 8), (slice(2, 3), 5)):
        actual = run(path, [array[rows, :length] for array in TOKENS])
        assert actual.keys() == outputs.keys()
        for name, values in outputs.items():
            if kind is Kind.TAGGING:  # Vectors of padding have no meaning.
                padding_mask = MASK[rows, :length] > 0
                np.testing.assert_allclose(
                    actual[name][padding_mask], values[rows, :length][padding_mask], atol=1e-5)
            else:
                np.testing.assert_allclose(actual[name], values[rows], atol=1e-5)


@pytest.mark.parametrize("answerability", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_answers_with_all_their_beams(tmp_path, answerability):
    model = example(Kind.QUESTION_ANSWERING, task__answerability=answerability,
                    task__ends_given_starts=answerability)
    actual, outputs = run(export(model, tmp_path / "answers.tflite"), TOKENS), expected(model)
    assert actual.keys() == outputs.keys()
    assert ("impossible" in actual) == answerability
    for row, count in enumerate(1 + SEGMENTS.sum(axis=1)):
        for name in ("start_index", "end_index"):
            # [CLS] and the context; the order of other positions is arbitrary.
            compared = (row, *[slice(count)] * (actual[name].ndim - 1))
            np.testing.assert_array_equal(actual[name][compared], outputs[name][compared])


def test_one_row_of_a_fixed_length_is_padded_by_the_caller(tmp_path, capsys):
    path = export(example(Kind.CLASSIFICATION), tmp_path / "fixed.tflite", sequence_length=10)
    assert "MB, takes one row of 10 tokens\n" in capsys.readouterr().out
    shapes = {tuple(detail["shape_signature"]) for detail in Interpreter(
        str(path)).get_signature_runner().get_input_details().values()}
    assert shapes == {(1, 10)}
    actual = run(path, [np.pad(array[2:], [(0, 0), (0, 2)]) for array in TOKENS])
    outputs = expected(example(Kind.CLASSIFICATION))
    np.testing.assert_allclose(actual["probabilities"], outputs["probabilities"][2:], atol=1e-5)


@pytest.mark.slow
def test_quantized_weights_are_smaller(tmp_path):
    # Tensors of fewer than 1,024 weights stay as they are.
    model = Example(Kind.CLASSIFICATION, model__hidden_size=64, model__intermediate_size=128)
    exact = export(model, tmp_path / "exact.tflite")
    for quantization, share in (("float16", 0.7), ("dynamic_int8", 0.8)):
        small = export(model, tmp_path / f"{quantization}.tflite", quantization)
        assert small.stat().st_size < share * exact.stat().st_size


def test_a_difference_or_too_long_a_row_leaves_no_file(tmp_path, monkeypatch):
    run_file = tflite._run_file
    monkeypatch.setattr(tflite, "_run_file", lambda *arguments: {
        name: value + 0.001 for name, value in run_file(*arguments).items()})
    for length, words in ((None, "away from the trained network.* nothing was"),
                          (17, "--sequence_length=17 is more than the network's 16")):
        with refused(words):
            export(example(Kind.CLASSIFICATION), tmp_path / "model.tflite", sequence_length=length)
    assert list(tmp_path.iterdir()) == []


def test_beams_in_another_order_are_equal_and_nan_is_a_difference():
    def beams(order):
        starts, ends = np.log([[0.5, 0.5]]), np.log([[[0.9, 0.1], [0.2, 0.8]]])
        return {"start_log_probs": starts[:, order], "start_index": np.array([[1, 2]])[:, order],
                "end_log_probs": ends[:, order],
                "end_index": np.array([[[1, 2], [1, 2]]])[:, order]}

    tokens = [np.ones([1, 3], np.int32)] * 3
    assert compare(
        beams([0, 1]), lambda inputs: beams([1, 0]), tokens, 1e-4) == 0.0
    wrong = beams([0, 1]) | {"start_index": np.array([[2, 1]])}
    with refused("spans is 3.5e-01 away"):
        compare(wrong, lambda inputs: beams([0, 1]), tokens, 1e-4)
    with refused("score is nan away"):
        compare({"score": np.array([np.nan], np.float32)},
                       lambda inputs: {"score": np.zeros([1], np.float32)}, tokens, 0.5)
