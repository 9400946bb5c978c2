"""Writes a SavedModel for TensorFlow Serving: built, loaded again, compared, then renamed."""

import dataclasses
import pathlib
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from electra_tf.export.new_directory import appearing_whole, write_checksums
from electra_tf.export.servable import DEFAULT, Servable
from electra_tf.modeling.fused import inference_mode
from electra_tf.platform import storage
from electra_tf.platform.atomic_file import make_directory
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
"""Requests that TensorFlow Serving runs before it says that a model is ready."""
PRECISIONS = {"float32": tf.float32, "bfloat16": tf.bfloat16}
_TOLERANCE = {tf.float32: 1e-4, tf.bfloat16: 0.1}
"""Largest difference of a probability."""
PROBES = (
    ("The committee approved the new budget on Tuesday.",
     "In May the harbour of Oslo freezes rarely, the pilots said."),
    ("Good.", "It rained."),
    ("Café Müller's 3rd opening -- what a dreadful, wonderful evening it was!",
     "Pina Bausch first showed Café Müller in Wuppertal in May 1978; six people danced in it. "
     "The chairs, of which there were many, were hers."),
    ("", "Nothing stands in the other column."),
)
"""Texts in pairs, of different lengths. Tasks with one text take the first."""
Request = Mapping[str, Sequence[str]]
"""A batch: column -> texts."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """Directory and number type of an export."""

    directory: Path
    """`directory/version`, which doesn't exist yet."""
    dtype: tf.DType

    @classmethod
    def of(cls, export_dir: str | Path, version: str, precision: str) -> "Target":
        """Checks what flags say; refuses a version that exists already."""
        if re.fullmatch(r"0*[1-9][0-9]{0,17}", version) is None:
            raise UserError("--export_version must be a positive integer of at most 18 digits, for "
                            f"TensorFlow Serving looks for numbers. Received: {version!r:.60}")
        directory = storage.path(export_dir) / version.lstrip("0")
        if directory.exists():
            raise UserError(f"{directory} exists already; give another --export_version or "
                            "--export_dir.")
        make_directory(directory.parent)
        return cls(directory=directory, dtype=PRECISIONS[precision])


def export(model: Servable, target: Target,
           add_files: Callable[[pathlib.Path], None] = lambda directory: None) -> None:
    """Exports a model; `add_files` writes further files into the directory, such as a card.

    Raises:
        UserError: it can't be written, or answers otherwise than the trained model.
    """
    served, final = model.for_inference(target.dtype), target.directory
    signatures = served.signatures()
    with appearing_whole(final) as unfinished:
        served.save(str(unfinished), signatures)
        requests = probes(served.columns)
        _write_warm_up(unfinished, final.parent.name, requests)
        add_files(unfinished)
        write_checksums(unfinished)
        difference = compare(unfinished, model, requests, target.dtype)
        size = sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file())
    print(f"exported {final}: {target.dtype.name}, {size / 1e6:,.1f} MB, signatures "
          f"{', '.join(signatures)}\ncompared with the trained model: probabilities within "
          f"{difference:.1e}", flush=True)


def probes(columns: Sequence[str]) -> Sequence[Request]:
    """Returns batches of several texts, and one of a single one."""
    whole = {name: [pair[number] for pair in PROBES] for number, name in enumerate(columns)}
    return whole, {name: texts[:1] for name, texts in whole.items()}


def _write_warm_up(directory: pathlib.Path, model: str, requests: Sequence[Request]) -> None:
    """Writes requests to the default signature of a model that will be served by this name."""
    path = directory / WARM_UP_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            asked = predict_pb2.PredictRequest()
            asked.model_spec.name, asked.model_spec.signature_name = model, DEFAULT
            for name, texts in request.items():
                asked.inputs[name].CopyFrom(tf.make_tensor_proto(texts, tf.string))
            writer.write(prediction_log_pb2.PredictionLog(predict_log=(
                prediction_log_pb2.PredictLog(request=asked))).SerializeToString())


def compare(directory: Path, trained: Servable, requests: Sequence[Request],
            dtype: tf.DType) -> float:
    """Compares the answers of an exported model, loaded from its files, and the trained one.

    Of weights in bfloat16 only fractions are compared, within a wider tolerance: where two labels
    or spans are nearly as likely, the other one may win. Returns the largest difference between two
    numbers, as a share of the larger one above 1; raises `UserError` if they differ by more.
    """
    exported, largest = tf.saved_model.load(str(directory)).signatures[DEFAULT], 0.0
    for request in requests:
        columns = {name: tf.constant(texts) for name, texts in request.items()}
        with inference_mode():
            expected = trained.answer(*columns.values())
        for name, value in exported(**columns).items():
            found, wanted = value.numpy(), expected[name].numpy()
            difference = 0.0
            if found.shape != wanted.shape:
                difference = np.inf
            elif value.dtype.is_floating:
                difference = np.max(np.abs(found - wanted) / np.maximum(1.0, np.abs(wanted)),
                                    initial=0.0)
            elif dtype == tf.float32 and not np.array_equal(found, wanted):
                difference = np.inf
            if not difference <= _TOLERANCE[dtype]:
                shown = [" ".join(str(values).split())[:120] for values in (found, wanted)]
                raise UserError(f"the exported model's {name} is {shown[0]}, the trained one's "
                                f"{shown[1]}; nothing was exported.")
            largest = max(largest, float(difference))
    return largest
