"""Writes a network as an ONNX file of standard ops, with its tokenizer and labels.

Inputs and outputs are those of the SavedModel's signature `token_ids`, but ids, segment ids and
mask are int64, as in the ONNX files that Hugging Face's libraries read. All sizes may vary.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import tensorflow as tf
from onnx import TensorProto, helper, numpy_helper

from electra_tf.config.finetuning import LongTexts
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError, note_once
from electra_tf.export import comparison
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.export.checksums import write_checksums
from electra_tf.export.comparison import Quantization
from electra_tf.export.onnx_runtime import CONFIG_FILE, MODEL_FILE, OnnxModel
from electra_tf.export.servable import TOKEN_INPUTS, Detector, Servable, ServedTask
from electra_tf.formats.hugging_face import encoder_entries
from electra_tf.formats.hugging_face_heads import head_entries
from electra_tf.formats.hugging_face_tokenizer import write_exact_text
from electra_tf.modeling.encoder import Encoder, EncoderLayer
from electra_tf.modeling.fused import LAYER_NORM_EPSILON, MASKED_SCORE
from electra_tf.modeling.layers import Dense, LayerNorm
from electra_tf.modeling.pooling import PoolingHead
from electra_tf.modeling.task_heads import ScoreHead
from electra_tf.tasks.kinds.multilabel import decision_threshold
from electra_tf.tasks.kinds.windows import KEEP
from electra_tf.tasks.task import Kind
from electra_tf.text.normalization import TextSettings

OPSET, IR_VERSION = 20, 9  # ONNX Runtime reads them from 1.17 (2024) on.
_LARGEST_INT8 = 63
"""With 8 bits, sums of two products overflow the 16 bits of CPUs without VNNI."""
_TOLERANCE = {Quantization.NONE: 1e-5, Quantization.DYNAMIC_INT8: 1.0}
"""Largest accepted difference, relative above 1. For int8 it only detects broken files."""
_ELSE = "export it with --format=saved_model"


def export(model: Servable, text: TextSettings, directory: pathlib.Path, quantization: Quantization,
           add_files: Callable[[pathlib.Path], None] = lambda directory: None) -> None:
    """Writes a directory, runs it, and keeps it if its ids and outputs equal the network's.

    `add_files` adds files, such as a card. Raises `UserError` for networks without such a file.
    """
    if model.encoder.config.is_modern:
        raise UserError("ONNX files have ELECTRA's layers, and this model has model.architecture="
                        f"{model.encoder.config.architecture}; {_ELSE}")
    config = encoder_entries(model.encoder.config, text) | {
        "architectures": ["ElectraModel"], "id2label": {}, "text_columns": list(model.columns),
        "max_seq_length": model.row_encoder.max_length, "keeps_tail": False,
        "label_threshold": None}
    # A task adds its labels and the way it cuts long texts.
    form = LongTexts.TRUNCATE
    if isinstance(model, ServedTask):
        network, form = model.network, model.network.config.long_texts
        config |= head_entries(network.spec) | {"keeps_tail": form is LongTexts.HEAD_TAIL}
        if network.spec.kind is Kind.MULTILABEL:
            config["label_threshold"] = decision_threshold(network.config)
    if form is LongTexts.WINDOWS:
        raise UserError("the model reads long texts in windows (task.long_texts=windows), but an "
                        f"ONNX file reads one row; {_ELSE}")
    # The files, which are compared with the network.
    columns, tokens = comparison.probes(model.columns).values(), comparison.probe_tokens(model)
    outputs, lines = comparison.network_outputs(model, tokens), []
    with atomic_directory(directory) as unfinished:
        unfinished.mkdir()
        write_exact_text(text, unfinished, model.row_encoder.max_length)
        write_json(unfinished / CONFIG_FILE, config)
        add_files(unfinished)
        for kind in dict.fromkeys((Quantization.NONE, quantization)):
            graph = build(model, quantized=kind is Quantization.DYNAMIC_INT8)
            (unfinished / MODEL_FILE).write_bytes(graph.SerializeToString())
            write_checksums(unfinished)
            exported = OnnxModel(unfinished)
            # The same ids, and outputs within the tolerance of float32 or of its own form.
            ids, _ = model.row_encoder.encode_counted(*map(tf.constant, columns), keep=KEEP[form])
            if not all(map(np.array_equal, exported.encode(*columns), ids)):
                raise UserError("tokenizer.json gives other ids than this program's tokenizer; "
                                "nothing was exported.")
            difference = comparison.compare(
                exported.score(*tokens), outputs, _TOLERANCE[kind], mask=tokens[2])
            lines.append(f"{kind}: within {difference:.1e} of the trained network")
        megabytes = (unfinished / MODEL_FILE).stat().st_size / 1e6
    print(f"exported {directory}: quantization {quantization}, {megabytes:,.1f} MB, takes rows of "
          f"up to {config['max_position_embeddings']} tokens", *lines, sep="\n", flush=True)


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
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def lookup(self, table: Any, indices: str) -> str:
        """Gathers rows of a table [N, E]."""
        # A table in float32, or integers with a scale for each row.
        if not self._quantized:
            return self.op("Gather", self.constant(table), indices)
        integers, scales = _rounded(np.asarray(table), axis=1, largest=127)
        rows = self.op("Cast", self.op("Gather", self.constant(integers, np.int8), indices),
                       to=TensorProto.FLOAT)
        return self.op("Mul", rows, self.op("Gather", self.constant(scales), indices))

    def dense(self, x: str, kernel: Any, bias: Any) -> str:
        """Returns x W + b; quantized, x is rounded to uint8 with one scale per call."""
        # W in float32; or x W = scale_x scale_W (sum of integers), with a scale for each column.
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

    def gelu_dense(self, x: str, layer: Dense) -> str:
        return self.op("Gelu", self.dense(x, *layer.parameters()))

    def norm(self, x: str, layer: LayerNorm) -> str:
        return self.op("LayerNormalization", x, *map(self.constant, layer.parameters()),
                       axis=-1, epsilon=LAYER_NORM_EPSILON)

    def reshape(self, x: str, shape: list[int]) -> str:
        """Changes the shape; 0 keeps a size."""
        return self.op("Reshape", x, self.constant(shape, np.int64))

    def first(self, x: str, position: list[int] | int) -> str:
        """Returns the vectors of [CLS] of x [B, L, H]: [B, 1, H] for [0], [B, H] for 0."""
        return self.op("Gather", x, self.constant(position, np.int64), axis=1)


def build(model: Servable, *, quantized: bool = False) -> onnx.ModelProto:
    """Returns a network as an ONNX model, in float32 or with int8 matmuls and tables."""
    graph = _Graph(quantized=quantized)
    # Nodes of encoder and head; the last ones name the outputs.
    outputs = _outputs(graph, model)
    for name, (value, _) in outputs.items():
        graph.nodes.append(helper.make_node("Identity", [value], [name]))
    proto = helper.make_model(helper.make_graph(
        graph.nodes, "electra",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
         for name in TOKEN_INPUTS],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape])
         for name, (_, shape) in outputs.items()], graph.weights),
        opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION,
        producer_name="electra_tf")
    onnx.checker.check_model(proto)
    return proto


def _outputs(graph: _Graph, model: Servable) -> dict[str, tuple[str, list[str | int]]]:
    """Adds encoder and head; returns value and shape, without the batch, of every output."""
    encoder, head = model.encoder, model.head
    hidden_size = encoder.config.hidden_size
    # A discriminator, an encoder, or the pooled vectors of sentence embeddings.
    if isinstance(model, Detector):
        logits = graph.dense(graph.gelu_dense(_encode(graph, encoder), head.dense),
                             *head.dense_1.parameters())
        return {"replaced_probability": (
            graph.op("Sigmoid", graph.reshape(logits, [0, -1])), ["length"])}
    if not isinstance(model, ServedTask):
        if model.pooling.normalize or model.pooling.modes != ("mean",):
            note_once(
                "the checkpoint defines the pooling of its vectors, and `answer` of an ONNX file "
                f"returns their mean without normalization; {_ELSE}, or pool `score`'s tokens")
        return {"tokens": (_encode(graph, encoder), ["length", hidden_size])}
    spec = model.network.spec
    if isinstance(head, PoolingHead) and head.mode in ("mean", "cls", "max"):
        return {"embedding": (_pool(graph, encoder, head.mode), [hidden_size])}
    if not isinstance(head, ScoreHead):
        raise UserError(f"the head of {spec.kind} has no form in ONNX; {_ELSE}")

    # The head of a task: [CLS] or every token, an optional hidden layer, and its outputs.
    by_token = spec.kind is Kind.TAGGING
    x = _encode(graph, encoder, first_only=not by_token)
    if head.hidden is not None:
        x = graph.gelu_dense(x, head.hidden)
    logits = graph.dense(x, *head.dense.parameters())
    if spec.kind is Kind.REGRESSION:
        scale, offset = map(graph.constant, spec.float32_units)
        score = graph.op("Add", graph.op("Mul", logits, scale), offset)
        return {"score": (graph.reshape(score, [-1]), [])}
    shape = [*(["length"] if by_token else []), len(spec.labels)]
    probabilities = (graph.op("Sigmoid", logits) if spec.kind is Kind.MULTILABEL
                     else graph.op("Softmax", logits, axis=-1))
    return {"logits": (logits, shape), "probabilities": (probabilities, shape)}


def _pool(graph: _Graph, encoder: Encoder, mode: str) -> str:
    """Adds the encoder and `PoolingHead`; returns vectors of length 1, [B, H]."""
    x = _encode(graph, encoder, first_only=mode == "cls")
    # Over the L positions with a 1 in the mask, [B, L, 1]: maximum, or sum / number.
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
    # x / |x|
    return graph.op("LpNormalization", x, axis=-1, p=2)


def _encode(graph: _Graph, encoder: Encoder, *, first_only: bool = False) -> str:
    """Adds the encoder; returns its vectors [B, L, H], or [B, H] of [CLS] with `first_only`."""
    ids, segment_ids, mask = TOKEN_INPUTS
    embeddings, project = encoder.embeddings, encoder.embeddings_project
    # Words + the first L positions + segments, [B, L, E]; layer norm, and projection to H.
    length = graph.op("Shape", ids, start=1, end=2)

    def first_rows(table: Any) -> str:
        return graph.op("Slice", graph.constant(table), graph.constant([0], np.int64), length)

    x = graph.lookup(embeddings.words.table, ids)
    if embeddings.positions is not None:
        x = graph.op("Add", x, first_rows(embeddings.positions.table))
    segments = graph.op("Gather", graph.constant(embeddings.segments.table), segment_ids)
    x = graph.norm(graph.op("Add", x, segments), embeddings.norm)
    if project is not None:
        x = graph.dense(x, *project.parameters())
    # Attention scores of padding get a large negative bias, [B, 1, 1, L].
    padding = graph.op("Sub", graph.constant(1.0), graph.op("Cast", mask, to=TensorProto.FLOAT))
    bias = graph.op("Unsqueeze", graph.op("Mul", padding, graph.constant(MASKED_SCORE)),
                    graph.constant([1, 2], np.int64))
    rotation = encoder.rotation(encoder.config.max_position_embeddings)
    angles = None if rotation is None else [first_rows(table) for table in rotation]
    # The layers; the last one computes [CLS] alone if the head reads nothing else.
    for layer in encoder.encoder_layers:
        x = _run_layer(graph, layer, x, bias, angles,
                       first_only=first_only and layer is encoder.encoder_layers[-1])
    return x


def _run_layer(graph: _Graph, layer: EncoderLayer, x: str, bias: str, angles: list[str] | None,
               *, first_only: bool) -> str:
    """Adds attention and feed-forward network; returns [B, L, H], with `first_only` [B, H].

    `angles` are cosines and sines [L, D] of rotary positions.
    """
    # W and b of queries, keys and values; those of queries are divided by sqrt(D).
    attention = layer.attention
    hidden, heads = attention.query.kernel.shape[0], attention.num_heads
    scales = (hidden // heads)**-0.5, 1.0, 1.0
    parts = [[weight * scale for weight in part.parameters()] for part, scale in zip(
        (attention.query, attention.key, attention.value), scales, strict=True)]

    def project(x: str, *parts: Any) -> list[str]:
        kernels, biases = zip(*parts, strict=True)
        joint = graph.dense(x, np.concatenate(kernels, axis=1), np.concatenate(biases))
        return [joint] if len(parts) == 1 else graph.op(
            "Split", joint, outputs=len(parts), axis=-1, num_outputs=len(parts))

    def split_heads(x: str, order: list[int]) -> str:
        return graph.op("Transpose", graph.reshape(x, [0, -1, heads, hidden // heads]), perm=order)

    def rotate(x: str, cosines: str, sines: str) -> str:
        halves = graph.op("Split", x, outputs=2, axis=-1, num_outputs=2)
        swapped = graph.op("Concat", *reversed(halves), axis=-1)
        return graph.op("Add", graph.op("Mul", x, cosines), graph.op("Mul", swapped, sines))

    # softmax(Q K^T / sqrt(D) + bias) V per head, of all tokens or of [CLS] alone.
    query, key, value = (project(graph.first(x, [0]), parts[0]) + project(x, *parts[1:])
                         if first_only else project(x, *parts))
    query, key = (split_heads(part, [0, 2, 1, 3]) for part in (query, key))
    if angles is not None:
        one = [graph.op("Slice", table, graph.constant([0], np.int64),
                        graph.constant([1], np.int64)) for table in angles]
        query, key = rotate(query, *(one if first_only else angles)), rotate(key, *angles)
    scores = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    weights = graph.op("Softmax", graph.op("Add", scores, bias), axis=-1)
    attended = graph.op("MatMul", weights, split_heads(value, [0, 2, 1, 3]))
    attended = graph.reshape(graph.op("Transpose", attended, perm=[0, 2, 1, 3]),
                             [0, hidden] if first_only else [0, -1, hidden])
    x = graph.first(x, 0) if first_only else x

    # Output of attention and feed-forward network, each with residual sum and layer norm.
    output = graph.dense(attended, *layer.attention_output.parameters())
    x = graph.norm(graph.op("Add", x, output), layer.attention_norm)
    contracted = graph.dense(graph.gelu_dense(x, layer.intermediate),
                             *layer.output_dense.parameters())
    return graph.norm(graph.op("Add", x, contracted), layer.output_norm)


def _rounded(weights: np.ndarray, axis: int, largest: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns integers in [-largest, largest], and the scale of every row or column."""
    # scale = max |w| / largest, at least 1e-12 / largest for weights of zeros.
    scales = np.maximum(np.abs(weights).max(axis=axis, keepdims=True), 1e-12) / largest
    return np.rint(weights / scales).astype(np.int8), scales.astype(np.float32)
