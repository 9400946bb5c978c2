"""Class weights equal scikit-learn's, weighted and smoothed losses PyTorch's."""

import numpy as np
import pytest
import tensorflow as tf
from sklearn.utils.class_weight import compute_class_weight

from electra_tf.config.finetuning import TaskConfig
from electra_tf.data.buckets import RowBatch
from electra_tf.tasks import files
from electra_tf.tasks.labels import balanced_weights, given_weights
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import TaggedExample, TaskSpec, TextExample
from tests.support.refusals import refused

SPEC = TaskSpec(name="classification", kind="classification", labels=("a", "b", "c"),
                metrics=("accuracy",))
SST2 = TaskSpec(name="sst2", kind="classification", labels=("0", "1"), metrics=("accuracy",))


@pytest.mark.parametrize("examples", [
    [TextExample(key="1", texts=("x",), label=label) for label in "cabbbbccbb"],
    [TaggedExample(key="1", words=tuple(tags), tags=tuple(tags)) for tags in ("cab", "bbbccbb")]])
def test_balanced_weights_are_those_of_scikit_learn(examples):
    expected = compute_class_weight("balanced", classes=np.array(list("abc")), y=list("cabbbbccbb"))
    labels = [label for example in examples for label in files.labels_of(example)]
    np.testing.assert_allclose(balanced_weights("abc", labels), expected)
    assert balanced_weights("abcd", labels)[3] == 1.0


@pytest.mark.parametrize(("spec", "text", "weights"), [
    (SPEC, "", ()), (SPEC, "balanced", ()), (SPEC, "c=5, a=1,b=.5", (1.0, 0.5, 5.0)),
    (SPEC, "1,2,3e-1", (1.0, 2.0, 0.3)), (SST2, "positive=3,negative=1", (1.0, 3.0)),
    (SST2, "1=3,0=1", (1.0, 3.0))])
def test_weights_are_named_or_in_the_order_of_labels(spec, text, weights):
    assert given_weights(text, spec) == weights


@pytest.mark.parametrize("text", [
    "1,2", "a=1,b=2,c=3,a=4", "a=0,b=1,c=1", "nan,1,1", "1,2,c=3", "a=1,b=2,d=3"])
def test_other_weights_are_refused_in_one_line(text):
    with refused(f"--class_weights .*a=1,b=1,c=1.* Received: {text!r}") as error:
        given_weights(text, SPEC)
    assert ("Unknown or without a weight: c, d." in str(error.value)) is ("d" in text)


LOGITS = np.array([[2.0, -1.0, 0.5], [0.1, 0.2, 0.3], [-1.5, 3.0, 0.0], [1.0, 1.0, -2.0],
                   [9.0, 9.0, 9.0]], np.float32)
LABELS = np.array([0, 2, 0, 1, 0], np.int32)


@pytest.mark.parametrize(("settings", "loss", "gradient"), [
    ({}, 1.630026, [-0.053601, 0.009778, 0.043823]),
    ({"class_weights": "0.5,2,4"}, 1.120494, [-0.015314, 0.002794, 0.012521]),
    ({"label_smoothing": 0.1}, 1.645026, [-0.036934, 0.001445, 0.035489]),
    ({"class_weights": "0.5,2,4", "label_smoothing": 0.1}, 1.254543,
     [0.008152, -0.005799, -0.002353])])
def test_losses_are_those_of_pytorch(settings, loss, gradient):
    """Expected: torch 2's CrossEntropyLoss(weight, label_smoothing=0.1) of the first four rows."""
    objective = KINDS[SPEC.kind].objective(SPEC, TaskConfig(**settings))
    present = tf.constant([True] * 4 + [False])
    batch = RowBatch(ids=tf.zeros([5, 1], tf.int32), padding_mask=tf.ones([5, 1], tf.bool),
                     segment_ids=tf.zeros([5, 1], tf.int32), present=present,
                     targets={"label": tf.constant(LABELS)})
    logits = tf.constant(LOGITS)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = objective.label_losses(batch.targets["label"], logits)
        total = tf.reduce_sum(tf.where(present, losses, 0.0))
        mean = total / objective.prepare_inputs(batch, None)[1]["loss"]
    assert float(mean) == pytest.approx(loss, abs=2e-6)
    np.testing.assert_allclose(tape.gradient(mean, logits)[0], gradient, atol=2e-6)


@pytest.mark.parametrize("kind", ["regression", "question_answering"])
@pytest.mark.parametrize("settings", [{"class_weights": "1,2"}, {"label_smoothing": 0.1}])
def test_numbers_and_questions_have_neither(kind, settings):
    spec = TaskSpec(name=kind, kind=kind, metrics=("pearson",))
    with refused(f"--{min(settings)} is for .*{kind}"):
        KINDS[spec.kind].objective(spec, TaskConfig(**settings))
