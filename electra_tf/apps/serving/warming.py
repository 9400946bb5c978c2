"""A model's first answers, before anybody waits for them.

TensorFlow prepares a signature when it is called for the first time: the first answers took 0.7
to 2.6 s. The requests that the export left in `assets.extra` are answered in calls of the sizes
that the server makes; a signature without any gets made-up rows.
"""

import contextlib
import pathlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow_serving.apis import prediction_log_pb2

from electra_tf.apps.serving.saved_models import DEFAULT_SIGNATURE, Arrays, ServedModel, Signature
from electra_tf.platform.errors import UserError

FILE = "assets.extra/tf_serving_warmup_requests"


def warm(model: ServedModel, version_dir: pathlib.Path, most_rows: int) -> None:
    """Calls every signature, with one row and with full calls.

    Args:
        model: that has just been loaded.
        version_dir: its directory.
        most_rows: of a joined call.

    Raises:
        UserError: the file with the requests is damaged, or a recorded request is refused.
    """
    asked = set()
    for name, inputs in _recorded(version_dir / FILE):
        signature = model.signatures.get(name or DEFAULT_SIGNATURE)
        if signature is None or inputs.keys() != signature.inputs.keys():
            continue
        asked.add(signature.name)
        try:
            for sized in _sizes(signature, inputs, most_rows):
                signature(sized)
        except tf.errors.OpError as error:
            raise UserError(f"{version_dir} refuses its own warm-up request: "
                            f"{' '.join(error.message.split())[:300]}") from error
    for signature in model.signatures.values():
        if signature.name not in asked and all(
                spec.dtype == tf.string or spec.dtype.is_bool or spec.dtype.is_floating
                or (spec.dtype.is_integer and not spec.dtype.is_quantized)
                for spec in signature.inputs.values()):
            with contextlib.suppress(tf.errors.OpError):  # It wants other values: so be it.
                signature(_made_up(signature))


def _recorded(path: pathlib.Path) -> Iterator[tuple[str, Arrays]]:
    """Yields the signature's name and the inputs of every recorded predict request."""
    if not path.exists():
        return
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            asked = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
            yield asked.model_spec.signature_name, {
                name: tf.make_ndarray(tensor) for name, tensor in asked.inputs.items()}
    except (tf.errors.DataLossError, message.DecodeError, TypeError, ValueError) as error:
        raise UserError(f"{path} is damaged: {' '.join(str(error).split())[:200]}; export the "
                        "model again, or remove this file.") from error


def _sizes(signature: Signature, inputs: Arrays, most_rows: int) -> Iterator[Arrays]:
    """Yields a request, its first row alone, and its rows repeated to a full call."""
    yield inputs
    rows = {len(array) if array.ndim else 0 for array in inputs.values()}
    if signature.has_rows and len(rows) == 1 and 0 not in rows:
        yield {name: array[:1] for name, array in inputs.items()}
        yield {name: np.resize(array, (most_rows, *array.shape[1:]))
               for name, array in inputs.items()}


def _made_up(signature: Signature) -> Arrays:
    """One row of the smallest size: a word, or ones."""
    return {name: np.full([size or 1 for size in spec.shape.as_list() or []]
                          if spec.shape.rank is not None else [1],
                          b"word" if spec.dtype == tf.string else 1,
                          object if spec.dtype == tf.string else spec.dtype.as_numpy_dtype)
            for name, spec in signature.inputs.items()}
