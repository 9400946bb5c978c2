"""Signatures hold ops that a stock TensorFlow Serving links, and no others."""

import pytest

from electra_tf.tasks.examples import Kind
from tests.export.allowed_ops import ALLOWED
from tests.export.served_models import Example, tiny_detector


def operations(function):
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    return {node.op for node in nodes}


@pytest.mark.parametrize("served", [
    tiny_detector, lambda: Example(Kind.TAGGING, task__feature_based=True).served(),
    lambda: Example(Kind.QUESTION_ANSWERING).served(threshold=0.0)],
    ids=["detector", "feature-based tagger", "answerer"])
def test_all_signatures(served):
    for name, function in served().signatures().items():
        assert operations(function) - ALLOWED == set(), name
