"""The ops that an exported graph may hold: what a stock TensorFlow Serving 2.12 to 2.20 links.

TensorFlow's own, all older than 2.12, and three of TensorFlow Text's, which Serving has linked
since its 2.12. None of XLA's, of TensorFlow Addons', and no trimmer of TensorFlow Text's:
`RoundRobinTrimmer` is linked from 2.20 only.
"""

_ARITHMETIC = """
    AddN AddV2 Cast Cumsum DivNoNan Erf Erfc Exp FloorDiv FloorMod Maximum Minimum Mul Neg RealDiv
    Rsqrt Sigmoid Sub Tanh"""
_COMPARISON = """
    Equal Greater GreaterEqual Less LessEqual LogicalAnd LogicalNot LogicalOr NotEqual Select
    SelectV2"""
_REDUCTION = """
    All Any ArgMax DenseBincount Max Mean Prod SegmentMax Sum TopKV2 UnsortedSegmentJoin
    UnsortedSegmentMax UnsortedSegmentMin UpperBound"""
_NETWORK = "BatchMatMulV2 BiasAdd FusedBatchNormV3 LogSoftmax MatMul Softmax"
_SHAPE = """
    BroadcastTo ConcatV2 Const EnsureShape ExpandDims Fill GatherNd GatherV2 Identity NoOp OnesLike
    Pack Placeholder RaggedGather RaggedRange RaggedTensorToTensor Range Reshape ReverseSequence
    Shape Size Split SplitV Squeeze StridedSlice TensorScatterUpdate Tile Transpose Unpack Where
    ZerosLike"""
_TEXT = """
    StaticRegexFullMatch StaticRegexReplace StringJoin StringLength StringLower StringSplitV2 Substr
    UnicodeTranscode"""
_TENSORFLOW_TEXT = "FastWordpieceTokenizeWithOffsets NormalizeUTF8 RegexSplitWithOffsets"
_CONTROL = """
    Assert If StatefulPartitionedCall StatelessWhile TensorListFromTensor TensorListGetItem
    TensorListReserve TensorListSetItem TensorListStack While"""
_VARIABLES = """
    AssignVariableOp DisableCopyOnRead MergeV2Checkpoints ReadVariableOp ResourceGather RestoreV2
    SaveV2 ShardedFilename VarHandleOp"""

ALLOWED = frozenset(" ".join((
    _ARITHMETIC, _COMPARISON, _REDUCTION, _NETWORK, _SHAPE, _TEXT, _TENSORFLOW_TEXT, _CONTROL,
    _VARIABLES)).split())
