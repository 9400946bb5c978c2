"""Calls a SavedModel of this project as the local server does."""

import pathlib

import numpy as np
import tensorflow as tf

from benchmarks.harness.worker import Ready
from benchmarks.serving.answers import turn_of
from electra_tf.apps.serving import models


def prepare(directory: str, texts: dict[str, list[str]], precision: str) -> Ready:
    """Loads the model; ops run concurrently, each on one core."""
    model = models.load(pathlib.Path(directory) / precision / "1", 1)
    signature = model.signatures[models.DEFAULT_SIGNATURE]
    (column,) = signature.inputs

    def answer(batch: list[str]) -> tuple[list[bytes], list[list[float]]]:
        outputs = signature({column: np.array(batch, object)})
        return outputs["label"].tolist(), outputs["probabilities"].tolist()

    return Ready(label=precision, versions={"TensorFlow": tf.__version__},
                 turn=turn_of(texts, answer))
