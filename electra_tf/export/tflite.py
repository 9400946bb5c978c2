"""Writes TensorFlow Lite files with the inputs and outputs of the SavedModel's `token_ids`.

A file contains only TensorFlow Lite's built-in ops, which every runtime has. The program that runs
the file tokenizes texts and decodes the outputs.
"""

import tempfile
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter

from electra_tf.core import machine
from electra_tf.core.atomic_file import replacing
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.export.comparison import Quantization, compare, network_outputs, probe_tokens
from electra_tf.export.servable import TOKEN_IDS, TOKEN_INPUTS, Outputs, Servable

_TOLERANCE = {Quantization.NONE: 1e-4, Quantization.FLOAT16: 1e-2, Quantization.DYNAMIC_INT8: 0.5}
"""Largest accepted difference, relative for numbers above 1. For int8 it only detects broken files:
the accepted loss depends on the task, and the difference is printed."""


def export(model: Servable, path: Path, quantization: Quantization, length: int | None) -> None:
    """Converts a model, runs the result, and keeps the file if its outputs equal the model's.

    `length` is the number of tokens of the single row that the file takes; None takes any rows.
    Raises `UserError` if the network has fewer positions, or the file's answers differ.
    """
    positions = model.encoder.config.max_position_embeddings
    if length is not None and length > positions:
        raise UserError(f"--sequence_length={length} is more than the network's {positions} "
                        "positions.")
    with replacing(path) as unfinished, tempfile.TemporaryDirectory() as directory:
        # The signature keeps its name only through a SavedModel.
        model.save(directory, {TOKEN_IDS: model.for_token_ids(
            [None, None] if length is None else [1, length])})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            directory, signature_keys=[TOKEN_IDS])
        # Weights in float32, float16, or int8 with activations that are rounded when the file runs.
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantization is not Quantization.NONE:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantization is Quantization.FLOAT16:
            converter.target_spec.supported_types = [tf.float16]
        with machine.stderr_closed():  # It lists the options that it ignores.
            unfinished.write_bytes(converter.convert())
        # The file's outputs for the probes, compared with those of the network.
        tokens = probe_tokens(model)
        if length is not None:
            tokens = [np.pad(part[:, :length], [(0, 0), (0, max(0, length - part.shape[1]))])
                      for part in tokens]
        outputs = _run_file(unfinished, tokens, 1 if length else len(tokens[0]))
        difference = compare(outputs, network_outputs(model, tokens), _TOLERANCE[quantization],
                             mask=tokens[2])
    takes = "rows of any length" if length is None else f"one row of {length} tokens"
    print(f"exported {path}: quantization {quantization}, {path.stat().st_size / 1e6:,.1f} MB, "
          f"takes {takes}\ncompared with the trained network: within {difference:.1e}", flush=True)


def _run_file(path: Path, tokens: Sequence[np.ndarray], batch: int) -> Outputs:
    """Returns a file's outputs for rows [B, L], of which `batch` run together."""
    with machine.stderr_closed():  # It reports its delegate.
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
    run = interpreter.get_signature_runner(TOKEN_IDS)
    results = [run(**{name: part[row:row + batch]
                      for name, part in zip(TOKEN_INPUTS, tokens, strict=True)})
               for row in range(0, len(tokens[0]), batch)]
    return {name: np.concatenate([result[name] for result in results]) for name in results[0]}
