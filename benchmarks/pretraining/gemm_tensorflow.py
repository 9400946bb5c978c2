"""Worker: the step's dense products alone, in TensorFlow."""

from collections.abc import Callable

import tensorflow as tf

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.products import Product, run_all, step_products
from benchmarks.pretraining.workload import Setting, Step, Workload, serve, steps_of


def prepare(workload: Workload, setting: Setting) -> Ready:
    """Returns the products in the setting's number type."""
    return Ready(
        label=f"TensorFlow {setting.precision}", versions={"TensorFlow": tf.__version__},
        turn=steps_of(lambda: _build(workload, tf.as_dtype(setting.precision))))


def _build(workload: Workload, dtype: tf.DType) -> Step:
    calls = [(product, _three_forms(product, dtype)) for product in step_products(workload)]
    return lambda: run_all(calls)


def _three_forms(product: Product, dtype: tf.DType) -> Callable[[], object]:
    """One graph with all copies: no two products share operands, so none is computed once only."""
    def operands(rows: int, columns: int) -> list[tf.Tensor]:
        return [tf.cast(tf.random.stateless_normal([rows, columns], [copy, rows]), dtype)
                for copy in range(product.copies)]

    inputs = operands(product.rows, product.inputs)
    weights = operands(product.inputs, product.outputs)
    gradients = operands(product.rows, product.outputs)

    def call(inputs, weights, gradients):
        results = []
        for x, w, dy in zip(inputs, weights, gradients, strict=True):
            results += [tf.matmul(x, w), tf.matmul(dy, w, transpose_b=True),
                        tf.matmul(x, dy, transpose_a=True)]
        # An element of each is read, or the graph optimizer would drop the product.
        return [result[0, 0] for result in results]

    compiled = tf.function(call, autograph=False)
    return lambda: compiled(inputs, weights, gradients)


if __name__ == "__main__":
    serve(prepare)
