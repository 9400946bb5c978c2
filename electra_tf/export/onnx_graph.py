"""Builds the ONNX graph of a trained network from its weights, with standard ops of opset 20.

Inputs and outputs are those of the SavedModel's signature `token_ids`, but ids, segment ids and
mask are int64, as in the ONNX files that Hugging Face's libraries read. All sizes may vary.
"""

from typing import Any

import numpy as np
import onnx
import tf_keras
from onnx import TensorProto, helper, numpy_helper

from electra_tf.export.servable import TOKEN_INPUTS, Detector, Servable, ServedTask
from electra_tf.modeling.encoder import MASKED_SCORE, Encoder, EncoderLayer
from electra_tf.modeling.fused import LAYER_NORM_EPSILON
from electra_tf.modeling.layers import LayerNorm
from electra_tf.modeling.pooling import PoolingHead
from electra_tf.modeling.task_heads import ScoreHead
from electra_tf.platform.errors import UserError
from electra_tf.tasks.task import Kind

OPSET, IR_VERSION = 20, 9
"""Versions of the standard and of the file format; ONNX Runtime reads them from 1.17 (2024) on."""
_LARGEST_INT8 = 63
"""Weights have 7 bits. With 8 bits, sums of two products overflow the 16 bits of CPUs that have
AVX2 or AVX-512 without VNNI."""


class _Graph:
    """A graph in construction; the methods return the names of values."""

    def __init__(self, *, quantized: bool):
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._quantized = quantized

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds an op; returns its output, or a list of them."""
        names = [f"{kind}_{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names if outputs > 1 else names[0]

    def constant(self, value: Any, dtype: type = np.float32) -> str:
        """Adds an array."""
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def lookup(self, table: Any, indices: str) -> str:
        """Gathers rows of a table [N, E]."""
        if not self._quantized:
            return self.op("Gather", self.constant(table), indices)
        integers, scales = _rounded(np.asarray(table), axis=1, largest=127)
        rows = self.op("Cast", self.op("Gather", self.constant(integers, np.int8), indices),
                       to=TensorProto.FLOAT)
        return self.op("Mul", rows, self.op("Gather", self.constant(scales), indices))

    def dense(self, x: str, kernel: Any, bias: Any) -> str:
        """Returns x W + b; quantized, x is rounded to uint8 with one scale per call."""
        kernel = np.asarray(kernel)
        if not self._quantized:
            product = self.op("MatMul", x, self.constant(kernel))
        else:
            integers, scales = _rounded(kernel, axis=0, largest=_LARGEST_INT8)
            rounded, scale, zero = self.op("DynamicQuantizeLinear", x, outputs=3)
            sums = self.op("MatMulInteger", rounded, self.constant(integers, np.int8), zero)
            # ONNX Runtime joins these ops into one.
            product = self.op("Mul", self.op("Cast", sums, to=TensorProto.FLOAT),
                              self.op("Mul", scale, self.constant(scales[0])))
        return self.op("Add", product, self.constant(bias))

    def gelu_dense(self, x: str, layer: tf_keras.layers.Layer) -> str:
        """Returns gelu(x W + b)."""
        return self.op("Gelu", self.dense(x, layer.kernel, layer.bias))

    def norm(self, x: str, norm: LayerNorm) -> str:
        """Normalizes the last axis."""
        return self.op("LayerNormalization", x, self.constant(norm.gamma), self.constant(norm.beta),
                       axis=-1, epsilon=LAYER_NORM_EPSILON)

    def reshape(self, x: str, shape: list[int]) -> str:
        """Changes the shape; 0 keeps a size."""
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def first(self, x: str, *, keep: bool) -> str:
        """Returns the vectors of [CLS], [B, 1, H] or [B, H], of x [B, L, H]."""
        return self.op("Gather", x, self.constant([0] if keep else 0, np.int64), axis=1)


def build(model: Servable, *, quantized: bool = False) -> onnx.ModelProto:
    """Returns a network as an ONNX model, in float32 or with int8 matmuls and tables.

    Raises `UserError` for a network that cannot be exported.
    """
    graph = _Graph(quantized=quantized)
    outputs = _outputs(graph, model)
    for name, (value, _) in outputs.items():
        graph.nodes.append(helper.make_node("Identity", [value], [name]))
    proto = helper.make_model(helper.make_graph(
        graph.nodes, "electra",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
         for name in TOKEN_INPUTS],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
         for name, (_, shape) in outputs.items()], graph.weights),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name="electra_tf")
    onnx.checker.check_model(proto)
    return proto


def _outputs(graph: _Graph, model: Servable) -> dict[str, tuple[str, list[str | int]]]:
    """Adds encoder and head; returns the value and the shape of every output."""
    head = model.head
    if isinstance(model, Detector):
        logits = graph.dense(graph.gelu_dense(_encoder(graph, model.encoder), head.dense),
                             head.dense_1.kernel, head.dense_1.bias)
        return {"replaced_probability": (
            graph.op("Sigmoid", graph.reshape(logits, [0, -1])), ["batch", "length"])}
    if not isinstance(model, ServedTask):
        return {"tokens": (_encoder(graph, model.encoder),
                           ["batch", "length", model.encoder.config.hidden_size])}
    spec = model.network.spec
    if isinstance(head, PoolingHead):
        return {"embedding": (_pooled(graph, model.encoder, head.mode),
                              ["batch", model.encoder.config.hidden_size])}
    if not isinstance(head, ScoreHead):
        raise UserError(f"the head of {spec.kind} can't be exported to ONNX; export it for "
                        "TensorFlow Lite: python -m electra_tf.apps.tools.export_tflite")
    by_token = spec.kind is Kind.TAGGING
    x = _encoder(graph, model.encoder, first_only=not by_token)
    if head.hidden is not None:
        x = graph.gelu_dense(x, head.hidden)
    logits = graph.dense(x, head.dense.kernel, head.dense.bias)
    if spec.kind is Kind.REGRESSION:
        score = graph.op("Add", graph.op("Mul", logits, graph.constant(spec.scale)),
                         graph.constant(spec.offset))
        return {"score": (graph.reshape(score, [-1]), ["batch"])}
    shape = ["batch", *(["length"] if by_token else []), len(spec.labels)]
    probabilities = (graph.op("Sigmoid", logits) if spec.kind is Kind.MULTILABEL
                     else graph.op("Softmax", logits, axis=-1))
    return {"logits": (logits, shape), "probabilities": (probabilities, shape)}


def _pooled(graph: _Graph, encoder: Encoder, mode: str) -> str:
    """Adds the encoder and `PoolingHead`; returns vectors of length 1, [B, H]."""
    if mode not in ("mean", "cls", "max"):
        raise UserError(f"sentence embeddings with pooling {mode} can't be exported to ONNX; mean, "
                        "cls and max can. Use python -m electra_tf.apps.tools.export_model")
    x = _encoder(graph, encoder, first_only=mode == "cls")
    mask = graph.op("Unsqueeze", TOKEN_INPUTS[2], graph.constant([2], np.int64))
    axis = graph.constant([1], np.int64)
    if mode == "max":
        lowest = graph.constant(np.finfo(np.float32).min)
        x = graph.op("Where", graph.op("Cast", mask, to=TensorProto.BOOL), x, lowest)
        x = graph.op("ReduceMax", x, axis, keepdims=0)
    elif mode == "mean":
        weights = graph.op("Cast", mask, to=TensorProto.FLOAT)
        total, count = (graph.op("ReduceSum", value, axis, keepdims=0)
                        for value in (graph.op("Mul", x, weights), weights))
        x = graph.op("Div", total, count)
    return graph.op("LpNormalization", x, axis=-1, p=2)


def _encoder(graph: _Graph, encoder: Encoder, *, first_only: bool = False) -> str:
    """Adds the encoder; returns its vectors [B, L, H], or [B, H] of [CLS] with `first_only`."""
    ids, segment_ids, mask = TOKEN_INPUTS
    embeddings, project = encoder.embeddings, encoder.embeddings_project
    length = graph.op("Shape", ids, start=1, end=2)
    positions = graph.op("Slice", graph.constant(embeddings.positions.table),
                         graph.constant([0], np.int64), length)
    x = graph.op("Add", graph.lookup(embeddings.words.table, ids), positions)
    segments = graph.op("Gather", graph.constant(embeddings.segments.table), segment_ids)
    x = graph.norm(graph.op("Add", x, segments), embeddings.norm)
    if project is not None:
        x = graph.dense(x, project.kernel, project.bias)
    padding = graph.op("Sub", graph.constant(1.0), graph.op("Cast", mask, to=TensorProto.FLOAT))
    bias = graph.op("Unsqueeze", graph.op("Mul", padding, graph.constant(MASKED_SCORE)),
                    graph.constant([1, 2], np.int64))
    for layer in encoder.encoder_layers:
        x = _layer(graph, layer, x, bias,
                   first_only=first_only and layer is encoder.encoder_layers[-1])
    return x


def _layer(graph: _Graph, layer: EncoderLayer, x: str, bias: str, *, first_only: bool) -> str:
    """Adds attention and feed-forward network; the rest of a layer with `first_only` is [B, H]."""
    attention = layer.attention
    hidden, heads = attention.query.kernel.shape[0], attention.num_heads
    scale = (hidden // heads)**-0.5
    parts = [(part.kernel * factor, part.bias * factor) for part, factor in (
        (attention.query, scale), (attention.key, 1.0), (attention.value, 1.0))]

    def project(x: str, parts: list[Any]) -> list[str]:
        kernels, biases = zip(*parts, strict=True)
        joint = graph.dense(x, np.concatenate(kernels, axis=1), np.concatenate(biases))
        if len(parts) == 1:
            return [joint]
        return graph.op("Split", joint, outputs=len(parts), axis=-1, num_outputs=len(parts))

    def split_heads(x: str, order: list[int]) -> str:
        return graph.op("Transpose", graph.reshape(x, [0, -1, heads, hidden // heads]), perm=order)

    query, key, value = (project(graph.first(x, keep=True), parts[:1]) + project(x, parts[1:])
                         if first_only else project(x, parts))
    scores = graph.op("MatMul", split_heads(query, [0, 2, 1, 3]), split_heads(key, [0, 2, 3, 1]))
    weights = graph.op("Softmax", graph.op("Add", scores, bias), axis=-1)
    attended = graph.op("MatMul", weights, split_heads(value, [0, 2, 1, 3]))
    attended = graph.reshape(graph.op("Transpose", attended, perm=[0, 2, 1, 3]),
                             [0, hidden] if first_only else [0, -1, hidden])
    if first_only:
        x = graph.first(x, keep=False)
    output, contract = layer.attention_output, layer.output_dense
    x = graph.norm(graph.op("Add", x, graph.dense(attended, output.kernel, output.bias)),
                   layer.attention_norm)
    expanded = graph.gelu_dense(x, layer.intermediate)
    return graph.norm(graph.op("Add", x, graph.dense(expanded, contract.kernel, contract.bias)),
                      layer.output_norm)


def _rounded(weights: np.ndarray, axis: int, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns integers in [-largest, largest], and the scale of every row or column."""
    scales = np.maximum(np.abs(weights).max(axis=axis, keepdims=True), 1e-12) / largest
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)
