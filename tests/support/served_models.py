"""Tiny networks with random weights, to serve, and what training's own code computes of them."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import FinetuningConfig, LongTexts
from electra_tf.config.overrides import override
from electra_tf.export.servable import ServedTask
from electra_tf.finetuning.predict import Predictor
from electra_tf.finetuning.run import FinetuningRun
from electra_tf.modeling.electra import Discriminator
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.inference import inference_encoder
from electra_tf.modeling.layers import LayerOptions
from electra_tf.tasks.kinds.base import ServedNetwork
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, TaskSpec
from electra_tf.text.rows import RowEncoder
from tests.support.few_words import TEXT, VOCABULARY

SPECS = {
    Kind.CLASSIFICATION: {"labels": ("no", "peut-être", "yes"), "metrics": ("accuracy",)},
    Kind.REGRESSION: {"metrics": ("pearson",), "scale": 2.0, "offset": 3.0,
                      "text_columns": ("first", "second")},
    Kind.MULTILABEL: {"labels": ("no", "peut-être", "yes"), "metrics": ("f1_micro",)},
    Kind.TAGGING: {"labels": ("B-X", "I-X", "O"), "metrics": ("f1",), "text_columns": ("words",),
                   "label_column": "tags"},
    Kind.QUESTION_ANSWERING: {"metrics": ("f1",)},
    Kind.SENTENCE_EMBEDDINGS: {"metrics": ("spearman",)}}
THRESHOLDS = {Kind.MULTILABEL: "label_threshold", Kind.QUESTION_ANSWERING: "no_answer_threshold"}
"""Setting of the threshold with which a kind predicts."""


class Example:
    """A task's network, and what training and serving make of it."""

    def __init__(self, kind: Kind, **changes):
        self.spec = TaskSpec(name=str(kind), kind=kind, **SPECS[kind])
        self.config = override(FinetuningConfig(), {
            "model.vocab_size": VOCABULARY.size, "model.embedding_size": 8,
            "model.hidden_size": 16, "model.num_heads": 2,
            "model.num_layers": 1 + (kind is Kind.CLASSIFICATION),
            "model.intermediate_size": 32, "model.max_position_embeddings": 16,
            "task.max_seq_length": 12, "task.max_query_length": 4, "task.beam_size": 5,
            "runtime.eval_batch_size": 4} | (
            {"task.doc_stride": 3} if kind is Kind.QUESTION_ANSWERING or changes.get(
                "task__long_texts") is LongTexts.WINDOWS else {}) | {
            name.replace("__", "."): value for name, value in changes.items()})
        self.objective = KINDS[kind].objective(self.spec, self.config.task)
        self.model = self.objective.build_model(self.config.model, seed=1, policy="float32")
        disturb(self.model)

    def served(self, threshold=None, tensor_parallel=1):
        """Returns what would be exported."""
        return self._task(
            inference_encoder(self.model.encoder, tf.float32, tensor_parallel), threshold)

    def _task(self, encoder, threshold):
        return ServedTask(ServedNetwork(
            encoder=encoder, head=self.model.head, row_encoder=self.row_encoder, spec=self.spec,
            config=self.config.task if threshold is None else dataclasses.replace(
                self.config.task, **{THRESHOLDS[self.spec.kind]: threshold})))

    @functools.cached_property
    def signatures(self):
        """The traced functions of what would be exported."""
        return self.served().signatures()

    @property
    def servable(self):
        """Returns it as the programs that export take it."""
        return self._task(self.model.encoder, None)

    @property
    def row_encoder(self):
        """Reads text as this task does."""
        return RowEncoder(TEXT, self.config.task.max_seq_length)

    def predicted(self, examples):
        """Returns the records that fine-tuning writes as predictions."""
        return self.scored(examples).records

    def scored(self, examples):
        """Returns the predictions of fine-tuning with their scores."""
        encoded = KINDS[self.spec.kind].encode(
            self.spec, examples, self.row_encoder, self.config.task)
        run = FinetuningRun(config=self.config, objective=self.objective, spec=self.spec, text=TEXT,
                            strategy=tf.distribute.OneDeviceStrategy("CPU:0"), model_dir=None)
        return encoded.score(Predictor(run, self.model).predict(encoded.rows), None)


example = functools.cache(Example)
"""Networks that tests share and leave as they are."""


def disturb(network):
    """Adds the same random numbers to all weights."""
    draw = np.random.default_rng(1)
    for variable in network.variables:
        variable.assign_add(draw.normal(0.0, 0.2, variable.shape))


def tiny_discriminator():
    """Returns a network of pre-training."""
    config = example(Kind.CLASSIFICATION).config.model.discriminator
    network = Discriminator(create_encoder(config, LayerOptions(seed=1)), LayerOptions(seed=1))
    disturb(network)
    return network


LINKED_OPS = frozenset("""
    AddN AddV2 All Any ArgMax Assert AssignVariableOp BatchMatMulV2 BiasAdd BroadcastTo Cast
    ConcatV2 Const Cumsum DenseBincount DisableCopyOnRead DivNoNan EnsureShape Equal Erf Erfc Exp
    ExpandDims FastWordpieceTokenizeWithOffsets Fill FloorDiv FloorMod FusedBatchNormV3 GatherNd
    GatherV2 Greater GreaterEqual Identity If IsFinite Less LessEqual Log LogSoftmax LogicalAnd
    LogicalNot LogicalOr LowerBound MatMul Max Maximum Mean MergeV2Checkpoints Minimum Mul Neg NoOp
    NormalizeUTF8 NotEqual OnesLike Pack Placeholder Prod RaggedGather RaggedRange
    RaggedTensorToTensor Range ReadVariableOp RealDiv RegexSplitWithOffsets Reshape ResourceGather
    RestoreV2 ReverseSequence Rsqrt SaveV2 SegmentMax Select SelectV2 Shape ShardedFilename Sigmoid
    Size Softmax Softplus Split SplitV Square Squeeze StatefulPartitionedCall StatelessWhile
    StaticRegexFullMatch StaticRegexReplace StopGradient StridedSlice StringJoin StringLength
    StringLower StringSplitV2 Sub Substr Sum Tanh TensorListFromTensor TensorListGetItem
    TensorListReserve TensorListSetItem TensorListStack TensorScatterUpdate Tile TopKV2 Transpose
    UnicodeTranscode Unique Unpack UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin
    UpperBound VarHandleOp Where While ZerosLike
""".split())
"""Ops that a stock TensorFlow Serving 2.12 to 2.20 links; only 2.20 links `RoundRobinTrimmer`."""


def unlinked_ops(graph):
    """Returns the ops of a graph and its functions that are not among them."""
    functions = (function.node_def for function in graph.library.function)
    return {node.op for nodes in (graph.node, *functions) for node in nodes} - LINKED_OPS
