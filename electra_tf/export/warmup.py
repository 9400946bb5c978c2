"""Requests that TensorFlow Serving runs before it says that a model is ready."""

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from electra_tf.export.signatures import DEFAULT
from electra_tf.export.verification import Requests
from electra_tf.platform.storage import Path

FILE = "assets.extra/tf_serving_warmup_requests"


def write(directory: Path, model: str, requests: Requests) -> None:
    """Writes requests to the default signature into a SavedModel's directory.

    Args:
        directory: of the SavedModel.
        model: name that it will be served under.
        requests: batches of texts.
    """
    path = directory / FILE
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
