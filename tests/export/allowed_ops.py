"""The ops that an exported graph may hold: what a stock TensorFlow Serving 2.12 to 2.20 links.

`RoundRobinTrimmer` of TensorFlow Text is not among them: only 2.20 links it.
"""

import tensorflow as tf

ALLOWED = frozenset("""
    AddN AddV2 All Any ArgMax Assert AssignVariableOp BatchMatMulV2 BiasAdd BroadcastTo Cast
    ConcatV2 Const Cumsum DenseBincount DisableCopyOnRead DivNoNan EnsureShape Equal Erf Erfc Exp
    ExpandDims FastWordpieceTokenizeWithOffsets Fill FloorDiv FloorMod FusedBatchNormV3 GatherNd
    GatherV2 Greater GreaterEqual Identity If Less LessEqual LogSoftmax LogicalAnd LogicalNot
    LogicalOr LowerBound MatMul Max Maximum Mean MergeV2Checkpoints Minimum Mul Neg NoOp
    NormalizeUTF8 NotEqual OnesLike Pack Placeholder Prod RaggedGather RaggedRange
    RaggedTensorToTensor Range ReadVariableOp RealDiv RegexSplitWithOffsets Reshape ResourceGather
    RestoreV2 ReverseSequence Rsqrt SaveV2 SegmentMax Select SelectV2 Shape ShardedFilename Sigmoid
    Size Softmax Split SplitV Squeeze StatefulPartitionedCall StatelessWhile StaticRegexFullMatch
    StaticRegexReplace StridedSlice StringJoin StringLength StringLower StringSplitV2 Sub Substr
    Sum Tanh TensorListFromTensor TensorListGetItem TensorListReserve TensorListSetItem
    TensorListStack TensorScatterUpdate Tile TopKV2 Transpose UnicodeTranscode Unique Unpack
    UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin UpperBound VarHandleOp Where While
    ZerosLike
""".split())


def others(graph: tf.compat.v1.GraphDef) -> set[str]:
    """Returns the ops of a graph and its functions that are not among them."""
    return {node.op for nodes in (graph.node, *(one.node_def for one in graph.library.function))
            for node in nodes} - ALLOWED
