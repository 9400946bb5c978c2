"""Writes SavedModels for TensorFlow Serving, compared with the trained model before renaming."""

import copy
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from electra_tf.core.atomic_file import make_directory
from electra_tf.core.errors import UserError
from electra_tf.core.storage import Path
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.export.checksums import write_checksums
from electra_tf.export.servable import DEFAULT, Servable
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.inference import inference_encoder

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
"""Requests that TensorFlow Serving runs before it says that a model is ready."""
_TOLERANCE = {tf.float32: 1e-4, tf.bfloat16: 0.1}
"""Largest accepted difference of a probability."""
PROBES = (
    ("The committee approved the new budget on Tuesday.",
     "In May the harbour of Oslo freezes rarely, the pilots said."),
    ("Good.", "It rained."),
    ("Café Müller's 3rd opening -- what a dreadful, wonderful evening it was!",
     "Pina Bausch first showed Café Müller in Wuppertal in May 1978; six people danced in it. "
     "The chairs, of which there were many, were hers."),
    ("", "Nothing stands in the other column."),
)
"""Pairs of texts of different lengths. Tasks with one text take the first of each pair."""
Request = Mapping[str, Sequence[str]]
"""A batch: column -> texts."""


def new_version(export_dir: Path, version: str) -> Path:
    """Returns the directory of a version; `UserError` if it exists, or is no positive integer."""
    if re.fullmatch(r"0*[1-9][0-9]{0,17}", version) is None:
        raise UserError("--export_version must be a positive integer of at most 18 digits, because "
                        f"TensorFlow Serving looks for numbers. Received: {version!r:.60}")
    directory = export_dir / version.lstrip("0")
    if directory.exists():
        raise UserError(f"{directory} exists already; give another --export_version or "
                        "--export_dir.")
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
        requests = probes(served.columns)
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
        difference = compare(unfinished, model, requests, dtype)
        size = sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file())
    print(f"exported {final}: {precision}, {size / 1e6:,.1f} MB, signatures "
          f"{', '.join(signatures)}\ncompared with the trained model: probabilities within "
          f"{difference:.1e}", flush=True)


def probes(columns: Sequence[str]) -> Sequence[Request]:
    """Returns two batches: all of `PROBES`, and the first text of each column."""
    batch = {name: [pair[index] for pair in PROBES] for index, name in enumerate(columns)}
    return batch, {name: texts[:1] for name, texts in batch.items()}


def compare(directory: Path, trained: Servable, requests: Sequence[Request],
            dtype: tf.DType) -> float:
    """Compares an exported model, loaded from its files, with the trained one.

    With bfloat16 weights only numbers are compared, because rounding can change which of two nearly
    equal labels or spans is the answer. Returns the largest difference, relative for numbers above
    1; raises `UserError` above the tolerance of `dtype`.
    """
    # The files as a server would load them, with each batch of the probes.
    exported, max_difference = tf.saved_model.load(str(directory)).signatures[DEFAULT], 0.0
    for request in requests:
        columns = {name: tf.constant(texts) for name, texts in request.items()}
        # The trained network in float32, which computes with other ops than the export.
        with inference_mode():
            expected = trained.answer(*columns.values())
        for name, value in exported(**columns).items():
            actual, trained_value = value.numpy(), expected[name].numpy()
            # Numbers by max |a - e| / max(1, |e|); words and labels must be equal in float32.
            difference = 0.0
            if actual.shape != trained_value.shape:
                difference = np.inf
            elif value.dtype.is_floating:
                difference = np.max(np.abs(actual - trained_value) / np.maximum(
                    1.0, np.abs(trained_value)), initial=0.0)
            elif dtype == tf.float32 and not np.array_equal(actual, trained_value):
                difference = np.inf
            if not difference <= _TOLERANCE[dtype]:
                shown = [" ".join(str(array).split())[:120] for array in (actual, trained_value)]
                raise UserError(f"the exported model's {name} is {shown[0]}, the trained one's "
                                f"{shown[1]}; nothing was exported.")
            max_difference = max(max_difference, float(difference))
    return max_difference
