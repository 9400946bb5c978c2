"""A text of four times the length takes four times the memory, whatever it consists of."""

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.fused import inference_mode
from electra_tf.tasks.examples import Kind
from tests.export.served_models import example, tiny_detector

pytestmark = pytest.mark.slow
UNITS = {"words": "the cafes won (in) ", "letters": "a", "spaces": " ", "punctuation": "(",
         "Chinese": "世", "marks": "a\u0301\u0323", "zero-width": "\u200b ", "controls": "\x00"}
LENGTH = 2000


def bytes_of_all_tensors(served):
    """Returns a function from a text to the size of all that a graph computes of it.

    What is computed in loops is left out: chunks of rows, whose size doesn't grow.
    """
    with inference_mode():
        graph = tf.compat.v1.wrap_function(served.answer, [
            tf.TensorSpec([None], tf.string) for _ in served.columns])
    tensors = [tensor for operation in graph.graph.get_operations()
               for tensor in operation.outputs
               if tensor.dtype not in (tf.resource, tf.variant)]
    computed = graph.prune(graph.inputs[:len(served.columns)], tensors)

    def measure(text):
        columns = ["who won", text] if served.columns == ("question", "context") else (
            [text] * len(served.columns))
        return sum(_size(value.numpy()) for value in computed(
            *(tf.constant([column]) for column in columns)))

    return measure


def _size(value):
    if not isinstance(value, np.ndarray):
        return len(value) if isinstance(value, bytes) else value.nbytes
    if value.dtype == object:
        return sum(map(len, value.flat)) + 24 * value.size
    return value.nbytes


def test_what_a_graph_computes_grows_with_the_text():
    served = {"detect": tiny_detector(),
              **{str(kind): example(kind).served() for kind in Kind}}
    for name, model in served.items():
        measure = bytes_of_all_tensors(model)
        for unit, characters in UNITS.items():
            short, long = ((characters * size)[:size] for size in (LENGTH, 4 * LENGTH))
            assert measure(long) < 4.5 * measure(short), (name, unit)
