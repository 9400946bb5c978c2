"""Writes a SavedModel for TensorFlow Serving: built, reloaded elsewhere, compared, then renamed."""

import dataclasses
import pathlib
import re
from collections.abc import Callable

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from electra_tf.export import verification
from electra_tf.export.new_directory import appearing_whole, write_checksums
from electra_tf.export.servable import Servable
from electra_tf.export.signatures import DEFAULT
from electra_tf.platform import storage
from electra_tf.platform.atomic_file import make_directory
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

WARM_UP_FILE = "assets.extra/tf_serving_warmup_requests"
"""Requests that TensorFlow Serving runs before it says that a model is ready."""
PRECISIONS = {"float32": tf.float32, "bfloat16": tf.bfloat16}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """Directory and number type of an export."""

    directory: Path
    """`directory/version`, which doesn't exist yet."""
    dtype: tf.DType

    @classmethod
    def of(cls, export_dir: str | Path, version: str, precision: str) -> "Target":
        """Checks what flags say.

        Raises:
            UserError: a version that is no positive integer or exists already, another precision.
        """
        if re.fullmatch(r"0*[1-9][0-9]{0,17}", version) is None:
            raise UserError("--export_version must be a positive integer of at most 18 digits, for "
                            f"TensorFlow Serving looks for numbers. Received: {version!r:.60}")
        if precision not in PRECISIONS:
            raise UserError(f"--serving_precision must be one of {', '.join(PRECISIONS)}. "
                            f"Received: {precision!r}")
        directory = storage.path(export_dir) / version.lstrip("0")
        if directory.exists():
            raise UserError(f"{directory} exists already; give another --export_version or "
                            "--export_dir.")
        make_directory(directory.parent)
        return cls(directory=directory, dtype=PRECISIONS[precision])


def export(model: Servable, target: Target,
           add_files: Callable[[pathlib.Path], None] = lambda directory: None) -> None:
    """Exports a fine-tuned model or a pre-trained discriminator.

    `add_files` writes further files into the directory, such as a card.

    Raises:
        UserError: it can't be written, or answers otherwise than the trained model.
    """
    served, final = model.for_inference(target.dtype), target.directory
    signatures = served.signatures()
    with appearing_whole(final) as unfinished:
        served.save(str(unfinished), signatures)
        requests = verification.requests(served.columns)
        _write_warm_up(unfinished, final.parent.name, requests)
        add_files(unfinished)
        write_checksums(unfinished)
        difference = verification.compare(unfinished, model.trained(), requests, target.dtype)
        size = sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file())
    print(f"exported {final}: {target.dtype.name}, {size / 1e6:,.1f} MB, signatures "
          f"{', '.join(signatures)}\n"
          f"compared with the trained model in a new process: probabilities within "
          f"{difference:.1e}", flush=True)


def _write_warm_up(directory: pathlib.Path, model: str,
                   requests: verification.Requests) -> None:
    """Writes requests to the default signature of a model that will be served by this name."""
    path = directory / WARM_UP_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            asked = predict_pb2.PredictRequest()
            asked.model_spec.name = model
            asked.model_spec.signature_name = DEFAULT
            for name, texts in request.items():
                asked.inputs[name].CopyFrom(tf.make_tensor_proto(texts, tf.string))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=asked))
            writer.write(log.SerializeToString())
