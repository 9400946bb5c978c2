"""Worker: a SavedModel of this project, called as the local server calls it."""

import os
import pathlib

import numpy as np
import tensorflow as tf

from benchmarks.serving.workload import FROZEN_WEIGHTS, Prepared, Workload, serve
from electra_tf.apps.serving import saved_models


def prepare(workload: Workload) -> Prepared:
    """Loads the model."""
    signature = saved_models.load(
        pathlib.Path(workload.model), "benchmark",
        tf.compat.v1.ConfigProto(intra_op_parallelism_threads=workload.intra_op,
                                 inter_op_parallelism_threads=workload.threads),
    ).signatures[saved_models.DEFAULT_SIGNATURE]
    (column,) = signature.inputs

    def answer(texts: list[str]) -> tuple[list[bytes], list[list[float]]]:
        found = signature({column: np.array(texts, object)})
        return found["label"].tolist(), found["probabilities"].tolist()

    frozen = ", frozen weights" if os.environ.get(FROZEN_WEIGHTS) == "1" else ""
    return Prepared(
        label=f"{workload.precision}, intra_op={workload.intra_op}{frozen}",
        versions={"TensorFlow": tf.__version__}, answer=answer)


if __name__ == "__main__":
    serve(prepare)
