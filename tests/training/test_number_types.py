"""In a bfloat16 run, whatever adds up or bends is computed in float32."""

import tensorflow as tf

from electra_tf.data.example import Batch
from tests import tiny_records, tiny_run

BATCH_TYPES = {"ids": tf.int32, "segment_ids": tf.int32, "valid": tf.bool}
FLOAT32_OPS = {
    "Erf", "Exp", "Log", "Log1p", "Rsqrt", "Sqrt", "Softplus", "Sigmoid", "Tanh", "Square", "Sum",
    "Mean", "Cumsum", "L2Loss", "ResourceApplyAdam", "SparseSoftmaxCrossEntropyWithLogits"}
"""Not Softmax, whose kernel computes in float32 whatever it is given; not MatMul, which adds up in
float32."""


def test_no_sum_and_no_function_is_computed_in_bfloat16(tmp_path):
    tiny_records.write(tmp_path / "records")
    run = tiny_run.run_on(tmp_path / "records", training__precision="bfloat16")
    batch = Batch(*(tf.TensorSpec([8, tiny_records.LENGTH], BATCH_TYPES[name])
                    for name in Batch._fields))
    graph = tiny_run.step_function(
        run, tiny_run.state_of(run)).get_concrete_function(batch).graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function
                            for node in function.node_def)]
    types = {(node.op, tf.dtypes.as_dtype(node.attr["T"].type))
             for node in nodes if node.attr["T"].type}
    assert ("MatMul", tf.bfloat16) in types
    computed = {op for op, dtype in types if op in FLOAT32_OPS}
    assert {"Exp", "Log", "Square", "Rsqrt", "Sum", "L2Loss", "ResourceApplyAdam"} <= computed
    assert not {op for op, dtype in types if op in FLOAT32_OPS and dtype == tf.bfloat16}
