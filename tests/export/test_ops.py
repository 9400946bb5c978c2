"""Signatures hold ops that a stock TensorFlow Serving links, and no others."""

from electra_tf.tasks.examples import Kind
from tests.export.allowed_ops import ALLOWED
from tests.export.served_models import example, tiny_detector


def operations(function):
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    return {node.op for node in nodes}


def test_all_signatures_of_all_kinds():
    served = {"detector": tiny_detector().signatures(),
              "feature-based": example(Kind.TAGGING, task__feature_based=True).signatures,
              "threshold": example(Kind.QUESTION_ANSWERING).served(threshold=0.0).signatures(),
              **{str(kind): example(kind).signatures for kind in Kind}}
    others = {(model, name): found for model, signatures in served.items()
              for name, function in signatures.items()
              if (found := operations(function) - ALLOWED)}
    assert others == {}
