"""Output layers of fine-tuned models, between our form and Hugging Face's.

Its head for classes has a hidden layer with GELU that ours, as Google's, needn't have. As
gelu(x) - gelu(-x) = x, a hidden layer that computes every logit and its negative is exactly none.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from electra_tf.checkpoints.hugging_face.config import Config
from electra_tf.checkpoints.shapes import Shapes, require_exactly
from electra_tf.checkpoints.weights import Weights
from electra_tf.platform.errors import UserError, shown
from electra_tf.tasks import glue
from electra_tf.tasks.examples import Kind
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec

ARCHITECTURES = {
    Kind.CLASSIFICATION: "ElectraForSequenceClassification",
    Kind.REGRESSION: "ElectraForSequenceClassification",
    Kind.TAGGING: "ElectraForTokenClassification",
    Kind.QUESTION_ANSWERING: "ElectraForQuestionAnswering",
}
_DEFAULT_LABELS = {"0": "LABEL_0", "1": "LABEL_1"}
"""What transformers leaves out of config.json."""
HEAD = "head/"
_HIDDEN, _OUTPUT = "head/hidden", "head/dense"
_START, _END = "head/dense", "head/dense_1"
_ONLY_PLAIN = ("Hugging Face's head for questions scores starts and ends by themselves and nothing "
               "else: train with --set task.ends_given_starts=false --set task.answerability=false")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """An output layer in Hugging Face's form."""

    weights: Weights
    """By their names."""
    config: Mapping[str, Any]
    """What config.json says of it."""


def to_theirs(spec: TaskSpec, weights: Weights, source: str) -> Head:
    """Returns the head of a fine-tuned model as Hugging Face has it.

    Args:
        spec: the task.
        weights: the model's, "head/..." among them.
        source: where it comes from, for errors.

    Raises:
        UserError: a head that Hugging Face has not.
    """
    own = {name: value for name, value in weights.items() if name.startswith(HEAD)}
    hidden_size = weights["electra/encoder/layer_0/output/dense/bias"].shape[0]
    if spec.kind is Kind.QUESTION_ANSWERING:
        if own.keys() != _names(_START, _END):
            raise UserError(f"{source}: {_ONLY_PLAIN}.")
        found = {"qa_outputs.weight": np.concatenate(
                     [own[f"{path}/kernel"] for path in (_START, _END)], axis=1).T,
                 "qa_outputs.bias": np.concatenate(
                     [own[f"{path}/bias"] for path in (_START, _END)])}
        return Head(weights=found, config={"architectures": [ARCHITECTURES[spec.kind]]})
    outputs = len(spec.labels) or 1
    with_hidden = f"{_HIDDEN}/kernel" in own
    require_exactly(own, _score_shapes(hidden_size, outputs, with_hidden), source)
    words = spec.label_words or ("LABEL_0",)
    config = {"architectures": [ARCHITECTURES[spec.kind]], "finetuning_task": spec.name,
              "id2label": {str(index): word for index, word in enumerate(words)},
              "label2id": {word: index for index, word in enumerate(words)}}
    # A number leaves the network in its own units.
    kernel = own[f"{_OUTPUT}/kernel"] * np.float32(spec.scale)
    bias = own[f"{_OUTPUT}/bias"] * np.float32(spec.scale) + np.float32(spec.offset)
    if spec.kind is Kind.TAGGING:
        return Head(weights={"classifier.weight": kernel.T, "classifier.bias": bias},
                    config=config)
    config["problem_type"] = ("regression" if spec.kind is Kind.REGRESSION
                              else "single_label_classification")
    if with_hidden:
        hidden_kernel, hidden_bias = own[f"{_HIDDEN}/kernel"], own[f"{_HIDDEN}/bias"]
    else:
        hidden_kernel, hidden_bias, kernel, bias = _through_gelu(kernel, bias, source)
    return Head(config=config, weights={
        "classifier.dense.weight": hidden_kernel.T, "classifier.dense.bias": hidden_bias,
        "classifier.out_proj.weight": kernel.T, "classifier.out_proj.bias": bias})


def from_theirs(config: Config, weights: Weights,
                source: str) -> tuple[TaskSpec, dict[str, Any], Weights]:
    """Returns what Hugging Face's head is to us.

    Args:
        config: of config.json.
        weights: all that isn't the encoder's, by their names.
        source: where it comes from, for errors.

    Returns:
        The task, settings by name that make a head of this form, and the head's weights.

    Raises:
        UserError: weights that are missing, left over, or of another shape.
    """
    kind = next(kind for kind, name in ARCHITECTURES.items()
                if name == config.architecture)
    hidden = config.hidden_size
    if kind is Kind.QUESTION_ANSWERING:
        require_exactly(weights, {"qa_outputs.weight": (2, hidden), "qa_outputs.bias": (2,)},
                        source)
        kernel, bias = weights["qa_outputs.weight"].T, weights["qa_outputs.bias"]
        return (TaskSpec(name=str(kind), kind=kind, metrics=KINDS[kind].metrics),
                {"task.ends_given_starts": False, "task.answerability": False},
                {f"{_START}/kernel": kernel[:, :1], f"{_START}/bias": bias[:1],
                 f"{_END}/kernel": kernel[:, 1:], f"{_END}/bias": bias[1:]})
    labels = _labels(config, source)
    if kind is Kind.TAGGING:
        require_exactly(weights, {"classifier.weight": (len(labels), hidden),
                                  "classifier.bias": (len(labels),)}, source)
        return (TaskSpec(name=str(kind), kind=kind, labels=labels, metrics=KINDS[kind].metrics,
                         texts=("words",), label="tags"), {},
                {f"{_OUTPUT}/kernel": weights["classifier.weight"].T,
                 f"{_OUTPUT}/bias": weights["classifier.bias"]})
    if config.problem_type == "regression" or len(labels) == 1:
        kind, labels = Kind.REGRESSION, ()
    outputs = len(labels) or 1
    require_exactly(weights, {
        "classifier.dense.weight": (hidden, hidden), "classifier.dense.bias": (hidden,),
        "classifier.out_proj.weight": (outputs, hidden), "classifier.out_proj.bias": (outputs,),
    }, source)
    return (_spec(config, kind, labels), {"task.hidden_layer": True},
            {f"{_HIDDEN}/kernel": weights["classifier.dense.weight"].T,
             f"{_HIDDEN}/bias": weights["classifier.dense.bias"],
             f"{_OUTPUT}/kernel": weights["classifier.out_proj.weight"].T,
             f"{_OUTPUT}/bias": weights["classifier.out_proj.bias"]})


def _spec(config: Config, kind: Kind, labels: tuple[str, ...]) -> TaskSpec:
    """Returns GLUE's task if these are its classes, else one of nobody's in particular."""
    task = glue.TASKS.get(config.finetuning_task)
    if labels and task and labels == glue.label_words(task.name, task.labels):
        return TaskSpec.of_glue(task)
    return TaskSpec(name=str(kind), kind=kind, labels=labels, metrics=KINDS[kind].metrics)


def _labels(config: Config, source: str) -> tuple[str, ...]:
    names = _DEFAULT_LABELS if config.id2label is None else config.id2label
    if names.keys() != {str(index) for index in range(len(names))}:
        raise UserError(f"{source}: id2label of config.json must name every label by its number, "
                        f"from 0. Received: {shown(names)}")
    labels = tuple(names[str(index)] for index in range(len(names)))
    numbers = {label: index for index, label in enumerate(labels)}
    if config.label2id not in (None, numbers) or len(numbers) < len(labels):
        raise UserError(f"{source}: label2id of config.json isn't id2label turned around, or a "
                        f"label has two numbers. Received: {shown(config.label2id)}")
    return labels


def _through_gelu(kernel: np.ndarray, bias: np.ndarray,
                  source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Returns two layers with GELU between them that compute what one dense layer does."""
    hidden_size, outputs = kernel.shape
    if 2 * outputs > hidden_size:
        raise UserError(f"{source}: {outputs} labels don't fit into Hugging Face's head, whose "
                        f"hidden layer has {hidden_size} units; train with --set "
                        "task.hidden_layer=true.")
    rest = hidden_size - 2 * outputs
    first = np.concatenate([kernel, -kernel, np.zeros([hidden_size, rest], np.float32)], axis=1)
    first_bias = np.concatenate([bias, -bias, np.zeros(rest, np.float32)])
    identity = np.eye(outputs, dtype=np.float32)
    second = np.concatenate([identity, -identity, np.zeros([rest, outputs], np.float32)])
    return first, first_bias, second, np.zeros(outputs, np.float32)


def _score_shapes(hidden_size: int, outputs: int, with_hidden: bool) -> Shapes:
    shapes: Shapes = {f"{_OUTPUT}/kernel": (hidden_size, outputs), f"{_OUTPUT}/bias": (outputs,)}
    if with_hidden:
        shapes |= {f"{_HIDDEN}/kernel": (hidden_size, hidden_size),
                   f"{_HIDDEN}/bias": (hidden_size,)}
    return shapes


def _names(*paths: str) -> set[str]:
    return {f"{path}/{leaf}" for path in paths for leaf in ("kernel", "bias")}
