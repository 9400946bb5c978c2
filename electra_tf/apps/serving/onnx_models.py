"""Loads exported ONNX directories as models of the server, with the signatures of SavedModels.

`serving_default` takes strings. Taggers and discriminators have the signature `token_ids` only.
"""

import pathlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from electra_tf.apps.serving.models import (
    DEFAULT_SIGNATURE,
    Arrays,
    ServedModel,
    Signature,
    as_json,
)
from electra_tf.export.onnx_runtime import OnnxModel
from electra_tf.export.servable import TOKEN_IDS
from electra_tf.platform.errors import UserError

_METHOD = "tensorflow/serving/predict"


def load(version_dir: pathlib.Path, number: int) -> ServedModel:
    """Loads a directory, or refuses a damaged one with a `UserError`."""
    model = OnnxModel(version_dir)

    def answer(*columns: np.ndarray) -> Arrays:
        return {name: np.vectorize(str.encode, otypes=[object])(array)
                if array.dtype == object else array for name, array in model.answer(*(
                    [text.decode(errors="ignore") for text in column] for column in columns)
                ).items()}

    def signature(function: Callable[..., Arrays], names: Sequence[str], dtype: tf.DType,
                  example: np.ndarray) -> Signature:
        inputs = {name: tf.TensorSpec([None] * example.ndim, dtype, name) for name in names}
        outputs = {name: tf.TensorSpec(
            [None, *(None if isinstance(size, str) else size for size in model.outputs.get(
                name, array.shape)[1:])] if name != "prediction" else [None, None],
            tf.string if array.dtype == object else array.dtype, name)
            for name, array in sorted(function(*[example] * len(names)).items())}

        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            try:
                results = function(*arrays)
            except UserError as error:
                raise tf.errors.InvalidArgumentError(None, None, str(error)) from error
            return [results[name] for name in outputs]

        return Signature(inputs=inputs, outputs=outputs, function=run)

    signatures = {TOKEN_IDS: signature(
        model.score, model.inputs, tf.int64, np.ones([1, 1], np.int64))}
    if model.answers_texts:
        signatures[DEFAULT_SIGNATURE] = signature(
            answer, model.config.text_columns, tf.string, np.array([b"A text."], object))
    return ServedModel(
        version=number, signatures=dict(sorted(signatures.items())),
        signature_defs=as_json({name: meta_graph_pb2.SignatureDef(
            inputs=_infos(value.inputs), outputs=_infos(value.outputs), method_name=_METHOD)
            for name, value in signatures.items()}))


def _infos(specs: Mapping[str, tf.TensorSpec]) -> Mapping[str, meta_graph_pb2.TensorInfo]:
    return {name: meta_graph_pb2.TensorInfo(
        name=name, dtype=spec.dtype.as_datatype_enum, tensor_shape=spec.shape.as_proto())
        for name, spec in specs.items()}
