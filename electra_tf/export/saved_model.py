"""Writes SavedModels for TensorFlow Serving, compared with the trained model before renaming."""

import copy
import pathlib
import re
from collections.abc import Callable

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from electra_tf.core.atomic_file import make_directory
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.export.checksums import write_checksums
from electra_tf.export.comparison import compare, probes
from electra_tf.export.servable import DEFAULT, Servable
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import inference_encoder

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
"""Requests that TensorFlow Serving runs before it says that a model is ready."""
_TOLERANCE = {tf.float32: 1e-4, tf.bfloat16: 0.1}
"""Largest accepted difference of a probability."""


def new_version(export_dir: Path, version: str) -> Path:
    """Returns the directory of a version; `UserError` if it exists, or is no positive integer."""
    if re.fullmatch(r"0*[1-9][0-9]{0,17}", version) is None:
        raise UserError("--export_version must be a positive integer of at most 18 digits, because "
                        f"TensorFlow Serving looks for numbers. Received: {version!r:.60}")
    directory = export_dir / version.lstrip("0")
    if directory.exists():
        raise UserError(f"{directory} exists already; give another --export_version or --output.")
    make_directory(export_dir)
    return directory


def export(model: Servable, final: Path, precision: str,
           add_files: Callable[[pathlib.Path], None] = lambda directory: None) -> None:
    """Exports a model in float32 or bfloat16; `add_files` adds files, such as a card.

    Raises `UserError` if it can't be written, or its answers differ from the trained model's.
    """
    # The network of predictions, which computes a layer in parts if its sizes allow it.
    dtype = tf.as_dtype(precision)
    config, parts = model.encoder.config, 2  # Of a layer: one request takes two cores.
    is_divisible = config.num_heads % parts == config.intermediate_size % parts == 0
    served = copy.copy(model)
    served.encoder = inference_encoder(model.encoder, dtype, parts if is_divisible else 1)
    signatures = served.signatures()
    with atomic_directory(final) as unfinished:
        served.save(str(unfinished), signatures)
        # Requests that TensorFlow Serving runs when it loads the model.
        batch = probes(served.columns)
        requests = batch, {name: texts[:1] for name, texts in batch.items()}
        (unfinished / WARM_UP_FILE).parent.mkdir()
        with tf.io.TFRecordWriter(str(unfinished / WARM_UP_FILE)) as writer:
            for columns in requests:
                request = predict_pb2.PredictRequest()
                request.model_spec.name = final.parent.name
                request.model_spec.signature_name = DEFAULT
                for name, texts in columns.items():
                    request.inputs[name].CopyFrom(tf.make_tensor_proto(texts, tf.string))
                writer.write(prediction_log_pb2.PredictionLog(predict_log=(
                    prediction_log_pb2.PredictLog(request=request))).SerializeToString())
        # The files are complete; then the answers of what was written are compared.
        add_files(unfinished)
        write_checksums(unfinished)
        exported, differences = tf.saved_model.load(str(unfinished)).signatures[DEFAULT], []
        for columns in requests:
            tensors = {name: tf.constant(texts) for name, texts in columns.items()}
            with inference_mode():  # In float32, with other ops than the export.
                expected = model.answer(*tensors.values())
            # Rounding to bfloat16 can change which of two nearly equal labels is the answer.
            differences.append(compare(exported(**tensors), expected, _TOLERANCE[dtype],
                                       only_numbers=dtype != tf.float32))
        size = sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file())
    print(f"exported {final}: {precision}, {size / 1e6:,.1f} MB, signatures "
          f"{', '.join(signatures)}\ncompared with the trained model: probabilities within "
          f"{max(differences):.1e}", flush=True)
