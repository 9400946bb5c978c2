"""A text of four times the length takes four times the memory, whatever it consists of."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from electra_tf.modeling.tracing import inference_mode
from electra_tf.tasks.examples import Kind
from tests.export.served_models import Example, tiny_detector

UNITS = {"words": "the cafes won (in) ", "letters": "a", "spaces": " ", "punctuation": "(",
         "Chinese": "世", "marks": "a\u0301\u0323", "zero-width": "\u200b ", "controls": "\x00"}
SERVED = {**{str(kind): lambda kind=kind: Example(kind).served() for kind in Kind},
          "feature_based": lambda: Example(Kind.TAGGING, task__feature_based=True).served(),
          "detect": tiny_detector}
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


@pytest.mark.parametrize("name", SERVED)
def test_what_a_graph_computes_grows_with_the_text(name):
    measure = bytes_of_all_tensors(SERVED[name]())
    for unit, characters in UNITS.items():
        short, long = ((characters * size)[:size] for size in (LENGTH, 4 * LENGTH))
        assert measure(long) < 4.5 * measure(short), unit


_CHILD = """
import resource, sys
import tensorflow as tf
from tests.export.test_text_length import SERVED
served = SERVED[sys.argv[1]]()
ask = served.signatures()["serving_default"]
for text in ("a", "the cafes won (in) " * 25_000):
    ask(**{name: tf.constant([text]) for name in served.columns})
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["detect", "tagging", "question_answering"])
def test_half_a_megabyte_of_text_takes_less_than_half_a_gigabyte(name):
    done = subprocess.run([sys.executable, "-c", _CHILD, name], cwd=Path(__file__).parents[2],
                          capture_output=True, text=True, check=True, timeout=600)
    before, after = map(int, done.stdout.split())
    assert after - before < 500_000  # KiB; a copy per word would take 70 gigabytes.
