"""ONNX graphs compute what the SavedModel's graph does, for rows of any number and length."""

import numpy as np
import onnx
import onnxruntime
import pytest
import tensorflow as tf

from electra_tf.export import onnx_graph
from electra_tf.export.servable import TOKEN_INPUTS, Detector, TextEncoder
from electra_tf.modeling.inference import InferenceEncoder
from electra_tf.tasks.task import Kind
from electra_tf.text.rows import Tokens
from tests.export.served_models import Example, example, tiny_discriminator
from tests.support.refusals import refused

IDS = np.array([[2, 5, 6, 7, 3, 9, 10, 3], [2, 8, 3, 12, 13, 14, 5, 3], [2, 9, 3, 5, 3, 0, 0, 0]])
SEGMENTS = np.array([[0] * 5 + [1] * 3, [0] * 3 + [1] * 5, [0] * 3 + [1] * 2 + [0] * 3])
MASK = (IDS > 0).astype(np.int64)


def run(model, rows=slice(None), length=8, **options):
    graph = onnx_graph.build(model, **options).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    inputs = [array[rows, :length] for array in (IDS, SEGMENTS, MASK)]
    values = session.run(None, dict(zip(TOKEN_INPUTS, inputs, strict=True)))
    return dict(zip([output.name for output in session.get_outputs()], values, strict=True))


def expected(model):
    return {name: value.numpy() for name, value in model.score(Tokens(
        tf.constant(IDS, tf.int32), tf.constant(SEGMENTS, tf.int32), tf.constant(MASK > 0))
    ).items()}


def pretrained(kind):
    network, texts = tiny_discriminator(), example(Kind.CLASSIFICATION).row_encoder
    models = [kind(encoder, network.head, texts) for encoder in (
        network.encoder, InferenceEncoder(network.encoder, tf.float32))]
    return models


def tasks(kind, **changes):
    model = example(kind, **changes)
    return model.servable, model.served()


MODELS = {
    "classifier": lambda: tasks(Kind.CLASSIFICATION),
    "hidden layer": lambda: tasks(Kind.CLASSIFICATION, task__hidden_layer=True),
    "equal sizes": lambda: tasks(Kind.CLASSIFICATION, model__embedding_size=16),
    "regression": lambda: tasks(Kind.REGRESSION), "tagger": lambda: tasks(Kind.TAGGING),
    "several labels": lambda: tasks(Kind.MULTILABEL),
    **{mode: lambda mode=mode: tasks(Kind.SENTENCE_EMBEDDINGS, task__pooling=mode)
       for mode in ("mean", "cls", "max")},
    "discriminator": lambda: pretrained(Detector), "encoder": lambda: pretrained(TextEncoder)}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("rows", "length"), [(slice(0, 3), 8), (slice(2, 3), 5)])
def test_outputs_are_the_networks(name, rows, length):
    model, reference = MODELS[name]()
    actual, outputs = run(model, rows, length), expected(reference)
    assert actual.keys() == outputs.keys()
    for output, values in outputs.items():
        if values.shape[1:2] == (8,):  # Vectors of padding have no meaning.
            padding_mask = MASK[rows, :length] > 0
            np.testing.assert_allclose(
                actual[output][padding_mask], values[rows, :length][padding_mask], atol=1e-5)
        else:
            np.testing.assert_allclose(actual[output], values[rows], atol=1e-5)


def test_int8_matmuls_are_near_and_without_saturation():
    model = Example(Kind.CLASSIFICATION, model__hidden_size=64, model__intermediate_size=128)
    exact, rounded = run(model.servable), run(model.servable, quantized=True)
    difference = np.abs(exact["probabilities"] - rounded["probabilities"]).max()
    assert 0 < difference < 0.05
    graph = onnx_graph.build(model.servable, quantized=True).graph
    weights = {weight.name: onnx.numpy_helper.to_array(weight) for weight in graph.initializer}
    factors = [weights[node.input[1]] for node in graph.node if node.op_type == "MatMulInteger"]
    assert len(factors) == 1 + 2 * 4 + 1 + 1  # The last layer's query reads [CLS] alone.
    # 2 * 255 * 63 is below 2 ** 15: two products fit into 16 bits.
    assert all(np.abs(factor.astype(int)).max() == 63 for factor in factors)
    assert len(graph.SerializeToString()) < 0.6 * len(
        onnx_graph.build(model.servable).graph.SerializeToString())


def test_extractive_qa_is_refused_and_names_what_is_possible():
    with refused("the head of question_answering has no form in ONNX; .*export_model"):
        onnx_graph.build(example(Kind.QUESTION_ANSWERING).servable)


def test_the_file_has_standard_ops_only():
    model = onnx_graph.build(example(Kind.CLASSIFICATION).servable, quantized=True)
    assert [(opset.domain, opset.version) for opset in model.opset_import] == [("", 20)]
    assert {node.domain for node in model.graph.node} == {""}
