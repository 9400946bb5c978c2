"""Several requests as one call of a model, and its outputs cut apart again.

A model may pad: its output [B, W] is as wide as the widest row of the call. What is cut out of a
joined call keeps that width, so an answer may have more padding than the same request alone would
get; its values are the same. Nothing here knows what padding looks like (an empty string or a zero
may well be a value), so nothing is trimmed: a client reads such an output as it has to read every
answer of several rows. TensorFlow Serving's own batching leaves the padding, too.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.apps.serving.saved_models import Arrays, Signature


def answer_together(
    signature: Signature, requests: Sequence[Arrays], rows: Sequence[int]
) -> list[Arrays | tf.errors.OpError]:
    """Returns every request's outputs, or the error that it raises.

    Args:
        signature: what to call.
        requests: inputs, equal in all dimensions but the first if there are several.
        rows: the first dimension of each.
    """
    if len(requests) > 1:
        joined = {name: np.concatenate([inputs[name] for inputs in requests])
                  for name in requests[0]}
        try:
            outputs = signature(joined)
        except tf.errors.OpError:
            return [_answer_alone(signature, inputs) for inputs in requests]
        if all(array.shape[:1] == (sum(rows),) for array in outputs.values()):
            return _cut(outputs, rows)
        # The first dimension was no batch dimension after all.
    return [_answer_alone(signature, inputs) for inputs in requests]


def _answer_alone(signature: Signature, inputs: Arrays) -> Arrays | tf.errors.OpError:
    try:
        return signature(inputs)
    except tf.errors.OpError as error:
        return error


def _cut(outputs: Arrays, rows: Sequence[int]) -> list[Arrays]:
    ends = np.cumsum(rows)[:-1]
    pieces = {name: np.split(array, ends) for name, array in outputs.items()}
    return [{name: parts[number] for name, parts in pieces.items()}
            for number in range(len(rows))]
