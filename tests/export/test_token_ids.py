"""Files for ONNX Runtime and TensorFlow Lite compute what the network does of token ids."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from electra_tf.export import onnx_graph, tflite
from electra_tf.export.comparison import Quantization, compare
from electra_tf.export.servable import TOKEN_INPUTS, Detector, TextEncoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.tasks.task import Kind
from electra_tf.text.rows import Tokens
from tests.support.refusals import refused
from tests.support.served_models import Example, example, tiny_discriminator, unlinked_ops

IDS = np.array([[2, 5, 6, 7, 3, 9, 10, 3], [2, 8, 3, 12, 13, 14, 5, 3], [2, 9, 3, 5, 3, 0, 0, 0]])
SEGMENTS = np.array([[0] * 5 + [1] * 3, [0] * 3 + [1] * 5, [0] * 3 + [1] * 2 + [0] * 3])
MASK = (IDS > 0).astype(np.int64)


def in_onnx(model, directory=None, **options):
    graph = onnx_graph.build(model, **options).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda **inputs: dict(zip(names, session.run(None, inputs), strict=True))


def in_tflite(model, directory, quantization="none", sequence_length=None):
    path = directory / f"{quantization}.tflite"
    tflite.export(model, path, Quantization(quantization), sequence_length)
    runner = Interpreter(str(path)).get_signature_runner("token_ids")
    return lambda **inputs: runner(**{
        name: value.astype(np.int32) for name, value in inputs.items()})


def run(network, rows=slice(None), length=8):
    return network(**{name: array[rows, :length]
                      for name, array in zip(TOKEN_INPUTS, (IDS, SEGMENTS, MASK), strict=True)})


def expected(model):
    """Returns what the SavedModel's graph computes."""
    return {name: value.numpy() for name, value in model.score(Tokens(
        tf.constant(IDS, tf.int32), tf.constant(SEGMENTS, tf.int32), tf.constant(MASK > 0))
    ).items()}


def pretrained(kind):
    network, texts = tiny_discriminator(), example(Kind.CLASSIFICATION).row_encoder
    return [kind(encoder, network.head, texts) for encoder in (
        network.encoder, InferenceEncoder(network.encoder, tf.float32))]


def tasks(kind, **changes):
    model = example(kind, **changes)
    return model.servable, model.served()


MODELS = {
    "classifier": lambda: tasks(Kind.CLASSIFICATION),
    "hidden layer": lambda: tasks(Kind.CLASSIFICATION, task__hidden_layer=True),
    "equal sizes": lambda: tasks(Kind.CLASSIFICATION, model__embedding_size=16),
    "rotary classifier": lambda: tasks(Kind.CLASSIFICATION, model__positions="rotary"),
    "rotary tagger": lambda: tasks(Kind.TAGGING, model__positions="rotary"),
    "modern tagger": lambda: tasks(
        Kind.TAGGING, model__architecture="modernbert", model__num_layers=3,
        model__attention_window=4, task__hidden_layer=True),
    "regression": lambda: tasks(Kind.REGRESSION), "tagger": lambda: tasks(Kind.TAGGING),
    "several labels": lambda: tasks(Kind.MULTILABEL),
    **{mode: lambda mode=mode: tasks(Kind.SENTENCE_EMBEDDINGS, task__pooling=mode)
       for mode in ("mean", "cls", "max")},
    "discriminator": lambda: pretrained(Detector), "encoder": lambda: pretrained(TextEncoder)}


@pytest.mark.parametrize(("form", "name"), [
    *((in_onnx, name) for name in MODELS if name != "modern tagger"), (in_tflite, "tagger"),
    (in_tflite, "rotary tagger"), (in_tflite, "modern tagger")])
def test_outputs_of_rows_of_any_length_are_the_networks(form, name, tmp_path):
    model, reference = MODELS[name]()
    network, outputs = form(model, tmp_path), expected(reference)
    for rows, length in ((slice(0, 3), 8), (slice(2, 3), 5)):
        actual = run(network, rows, length)
        assert actual.keys() == outputs.keys()
        for output, values in outputs.items():
            # Vectors of padding have no meaning.
            kept = MASK[rows, :length] > 0 if values.shape[1:2] == (8,) else ...
            whole = values[rows, :length] if values.shape[1:2] == (8,) else values[rows]
            np.testing.assert_allclose(actual[output][kept], whole[kept], atol=1e-5)


def test_answers_of_tflite_have_all_their_beams(tmp_path):
    model = example(Kind.QUESTION_ANSWERING)
    actual, outputs = run(in_tflite(model.servable, tmp_path)), expected(model.served())
    assert actual.keys() == outputs.keys() and "impossible" in actual
    for row, count in enumerate(1 + SEGMENTS.sum(axis=1)):
        for name in ("start_index", "end_index"):
            # [CLS] and the context; the order of other positions is arbitrary.
            compared = (row, *[slice(count)] * (actual[name].ndim - 1))
            np.testing.assert_array_equal(actual[name][compared], outputs[name][compared])


def test_one_row_of_a_fixed_length_is_padded_by_the_caller(tmp_path, capsys):
    network = in_tflite(example(Kind.CLASSIFICATION).servable, tmp_path, sequence_length=10)
    assert "one row of 10 tokens\n" in capsys.readouterr().out
    shapes = {tuple(detail["shape_signature"]) for detail in Interpreter(str(
        tmp_path / "none.tflite")).get_signature_runner().get_input_details().values()}
    assert shapes == {(1, 10)}
    actual = network(**{name: np.pad(array[2:], [(0, 0), (0, 2)]) for name, array in zip(
        TOKEN_INPUTS, (IDS, SEGMENTS, MASK), strict=True)})
    outputs = expected(example(Kind.CLASSIFICATION).served())
    np.testing.assert_allclose(actual["probabilities"], outputs["probabilities"][2:], atol=1e-5)


@pytest.mark.slow
def test_quantized_weights_of_tflite_are_smaller(tmp_path):
    # Tensors of fewer than 1,024 weights stay as they are.
    model = Example(Kind.CLASSIFICATION, model__hidden_size=128, model__num_layers=1)
    exact = 4 * sum(variable.shape.num_elements() for variable in model.model.variables)
    for quantization, share in (("float16", 0.7), ("dynamic_int8", 0.8)):
        in_tflite(model.servable, tmp_path, quantization)
        assert (tmp_path / f"{quantization}.tflite").stat().st_size < share * exact


def test_int8_matmuls_of_onnx_are_near_and_without_saturation():
    model = Example(Kind.CLASSIFICATION, model__hidden_size=64, model__intermediate_size=128)
    exact, rounded = (run(in_onnx(model.servable, quantized=quantized))["probabilities"]
                      for quantized in (False, True))
    assert 0 < np.abs(exact - rounded).max() < 0.05
    built = onnx_graph.build(model.servable, quantized=True)
    weights = {weight.name: onnx.numpy_helper.to_array(weight)
               for weight in built.graph.initializer}
    factors = [weights[node.input[1]] for node in built.graph.node
               if node.op_type == "MatMulInteger"]
    assert len(factors) == 1 + 2 * 4 + 1 + 1  # The last layer's query reads [CLS] alone.
    # 2 * 255 * 63 is below 2 ** 15: two products fit into 16 bits.
    assert all(np.abs(factor.astype(int)).max() == 63 for factor in factors)
    assert built.ByteSize() < 0.6 * onnx_graph.build(model.servable).ByteSize()
    # Standard ops only.
    assert [(opset.domain, opset.version) for opset in built.opset_import] == [("", 20)]
    assert {node.domain for node in built.graph.node} == {""}


def test_a_difference_or_too_long_a_row_leaves_no_file(tmp_path, monkeypatch):
    run_file = tflite._run_file
    monkeypatch.setattr(tflite, "_run_file", lambda *arguments: {
        name: value + 0.001 for name, value in run_file(*arguments).items()})
    for length, words in ((None, "away from the trained network"),
                          (17, "--sequence_length=17 .* 16")):
        with refused(words):
            in_tflite(example(Kind.CLASSIFICATION).servable, tmp_path, sequence_length=length)
    assert list(tmp_path.iterdir()) == []
    with refused("question_answering .*ONNX; export it with --format=saved_model"):
        onnx_graph.build(example(Kind.QUESTION_ANSWERING).servable)


def test_beams_in_another_order_are_equal_and_nan_is_a_difference():
    def beams(order):
        starts, ends = np.log([[0.5, 0.5]]), np.log([[[0.9, 0.1], [0.2, 0.8]]])
        return {"start_log_probs": starts[:, order], "start_index": np.array([[1, 2]])[:, order],
                "end_log_probs": ends[:, order],
                "end_index": np.array([[[1, 2], [1, 2]]])[:, order]}

    assert compare(beams([0, 1]), beams([1, 0]), 1e-4) == 0.0
    for outputs, other, words in (
            (beams([0, 1]) | {"start_index": np.array([[2, 1]])}, beams([0, 1]), "spans is 3.5"),
            ({"score": np.array([np.nan])}, {"score": np.zeros([1])}, "score is nan away")):
        with refused(words):
            compare(outputs, other, 1e-4)


def test_onnx_refuses_modernberts_layers_by_name(tmp_path):
    model, _ = MODELS["modern tagger"]()
    with refused("this model has model.architecture=modernbert; export it with"):
        onnx_graph.export(model, model.row_encoder, tmp_path / "onnx", Quantization.NONE)


def test_signatures_of_modernberts_layers_have_ops_that_serving_links():
    _, model = MODELS["modern tagger"]()
    for function in model.signatures().values():
        assert unlinked_ops(function.graph.as_graph_def()) == set()
