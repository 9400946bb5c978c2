"""Worker: the step's dense matrix multiplications alone, in TensorFlow."""

from collections.abc import Callable

import tensorflow as tf

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.matmuls import step_of
from benchmarks.pretraining.workload import Setting, Workload, serve, steps_of

Tensors = list[tf.Tensor]


def prepare(workload: Workload, setting: Setting) -> Ready:
    """Returns the matrix multiplications in the setting's number type."""
    def operand(seed: int, rows: int, columns: int) -> tf.Tensor:
        return tf.cast(tf.random.stateless_normal([rows, columns], [seed, rows]),
                       setting.precision)

    return Ready(
        label=f"TensorFlow {setting.precision}", versions={"TensorFlow": tf.__version__},
        turn=steps_of(lambda: step_of(workload, operand, _three_forms)))


def _three_forms(inputs: Tensors, weights: Tensors, gradients: Tensors) -> Callable[[], object]:
    """Returns one graph with all copies; no two share operands, so none is computed only once."""
    @tf.function(autograph=False)
    def multiply(inputs: Tensors, weights: Tensors, gradients: Tensors) -> Tensors:
        results = []
        for x, w, dy in zip(inputs, weights, gradients, strict=True):
            results += [tf.matmul(x, w), tf.matmul(dy, w, transpose_b=True),
                        tf.matmul(x, dy, transpose_a=True)]
        # One element of each is read: the graph optimizer would drop an unused multiplication.
        return [result[0, 0] for result in results]

    return lambda: multiply(inputs, weights, gradients)


if __name__ == "__main__":
    serve(prepare)
