"""Worker: a SavedModel of this project, called as a server calls it."""

import os

import tensorflow as tf
import tensorflow_text  # noqa: F401 - registers the ops that tokenize

from benchmarks.serving.workload import FROZEN_WEIGHTS, Prepared, Workload, serve


def prepare(workload: Workload) -> Prepared:
    """Loads the model."""
    tf.config.threading.set_intra_op_parallelism_threads(workload.intra_op)
    tf.config.threading.set_inter_op_parallelism_threads(workload.threads)
    model = tf.saved_model.load(workload.model)
    call = model.signatures["serving_default"]
    (column,) = call.structured_input_signature[1]

    def answer(texts: list[str]) -> tuple[list[bytes], list[list[float]]]:
        outputs = call(**{column: tf.constant(texts)})
        found = {name: value.numpy() for name, value in outputs.items()}
        return found["label"].tolist(), found["probabilities"].tolist()

    frozen = ", frozen weights" if os.environ.get(FROZEN_WEIGHTS) == "1" else ""
    return Prepared(
        label=f"{workload.precision}, intra_op={workload.intra_op}{frozen}",
        versions={"TensorFlow": tf.__version__}, answer=answer)


if __name__ == "__main__":
    serve(prepare)
