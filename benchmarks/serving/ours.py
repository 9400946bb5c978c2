"""Calls SavedModels as the local server does, ONNX files, and LiteRT files."""

import pathlib

import numpy as np

from benchmarks.harness.worker import Ready
from benchmarks.serving.answers import Answer, turn_of
from electra_tf.platform.machine import usable_cores


def prepare(directory: str, texts: dict[str, list[str]], precision: str,
            runtime: str = "saved_model") -> Ready:
    """Loads the model; ops of a SavedModel run concurrently, each on one core."""
    path = pathlib.Path(directory)
    versions, answer = {"saved_model": _saved_model, "onnx": _onnx, "tflite": _tflite}[runtime](
        path, precision)
    label = precision if runtime == "saved_model" else f"{runtime} {precision}"
    return Ready(label=label, versions=versions, turn=turn_of(texts, answer))


def _saved_model(path: pathlib.Path, precision: str) -> tuple[dict[str, str], Answer]:
    import tensorflow as tf

    from electra_tf.apps.serving import models

    signature = models.load(path / precision / "1").signatures[models.DEFAULT_SIGNATURE]

    def answer(batch: list[str]) -> tuple[list[bytes], list[list[float]]]:
        outputs = signature.function(np.array(batch, object))
        return outputs["label"].tolist(), outputs["probabilities"].tolist()

    return {"TensorFlow": tf.__version__}, answer


def _onnx(path: pathlib.Path, precision: str) -> tuple[dict[str, str], Answer]:
    import onnxruntime

    from electra_tf.export.onnx_runtime import OnnxModel

    model = OnnxModel(path / f"onnx_{precision}")

    def answer(batch: list[str]) -> tuple[list[str], list[list[float]]]:
        outputs = model.answer(batch)
        return outputs["label"].tolist(), outputs["probabilities"].tolist()

    return {"ONNX Runtime": onnxruntime.__version__}, answer


def _tflite(path: pathlib.Path, precision: str) -> tuple[dict[str, str], Answer]:
    """Reads the file and the tokenizer of the ONNX directory: a LiteRT file takes token ids."""
    import importlib.metadata

    from ai_edge_litert.interpreter import Interpreter

    from electra_tf.export.onnx_runtime import OnnxModel

    model = OnnxModel(path / f"onnx_{precision}")
    run = Interpreter(str(path / f"{precision}.tflite"),
                      num_threads=usable_cores()).get_signature_runner("token_ids")

    def answer(batch: list[str]) -> tuple[list[str], list[list[float]]]:
        rows = zip(model.inputs, model.encode(batch), strict=True)
        probabilities = run(**{name: array.astype(np.int32) for name, array in rows})[
            "probabilities"]
        labels = [model.config["id2label"][str(index)] for index in probabilities.argmax(axis=1)]
        return labels, probabilities.tolist()

    return {"LiteRT": importlib.metadata.version("ai-edge-litert")}, answer
