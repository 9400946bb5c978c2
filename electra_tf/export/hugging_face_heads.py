"""Output layers of fine-tuned models, between our form and Hugging Face's.

Which layers a head has is data of the task's kind (`HuggingFaceHead` in `tasks/kinds/kind.py`).
Hugging Face's head for classes has a hidden layer with GELU that ours, as Google's, needn't have.
As gelu(x) - gelu(-x) = x, a hidden layer that computes every logit and its negative changes no
output.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from electra_tf.checkpoints.hugging_face.files import Config
from electra_tf.checkpoints.pretrained import UnconvertedHead
from electra_tf.checkpoints.shapes import require_exactly
from electra_tf.checkpoints.weights import Weights
from electra_tf.platform.errors import UserError, shown
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.task import TaskSpec

_DEFAULT_LABELS = {"0": "LABEL_0", "1": "LABEL_1"}
"""What transformers leaves out of config.json."""
_ONE_NUMBER, _CLASSES = "regression", "single_label_classification"
"""Values of problem_type in config.json."""
HEAD = "head/"

Layers = dict[str, tuple[np.ndarray, np.ndarray]]
"""Name -> kernel [inputs, outputs] and bias of a dense layer."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Head:
    """An output layer in Hugging Face's form."""

    weights: Weights
    """By their names."""
    config: Mapping[str, Any]
    """Entries of config.json."""


def to_theirs(spec: TaskSpec, weights: Weights, source: str) -> Head:
    """Returns the head of a fine-tuned model as Hugging Face has it.

    Args:
        spec: the task.
        weights: the model's, "head/..." among them.
        source: where it comes from, for errors.

    Raises:
        UserError: a head that Hugging Face doesn't have.
    """
    form = KINDS[spec.kind].hugging_face
    ours = _our_layers(spec, weights, source)
    *hidden, (output, parts) = form.layers.items()
    # A number leaves the network in its own units.
    kernel = np.concatenate([ours[part][0] for part in parts], axis=1) * np.float32(spec.scale)
    bias = np.concatenate([ours[part][1] for part in parts])
    bias = bias * np.float32(spec.scale) + np.float32(spec.offset)
    layers = {theirs: ours[name] for theirs, (name,) in hidden if name in ours}
    if len(layers) < len(hidden):
        layers[hidden[0][0]], (kernel, bias) = _through_gelu(kernel, bias, source)
    layers[output] = kernel, bias
    config: dict[str, Any] = {"architectures": [form.architecture]}
    if spec.labels or form.problem_type:
        words = spec.label_words or ("LABEL_0",)
        config |= {"finetuning_task": spec.name,
                   "id2label": {str(index): word for index, word in enumerate(words)},
                   "label2id": {word: index for index, word in enumerate(words)}}
    if form.problem_type:
        config["problem_type"] = form.problem_type
    return Head(config=config, weights={
        name: value for theirs, (kernel, bias) in layers.items()
        for name, value in ((f"{theirs}.weight", kernel.T), (f"{theirs}.bias", bias))})


def from_theirs(head: UnconvertedHead, source: str) -> tuple[TaskSpec, dict[str, Any], Weights]:
    """Returns Hugging Face's head in our form.

    Args:
        head: as it was read.
        source: where it comes from, for errors.

    Returns:
        The task, settings by name that make a head of this form, and the head's weights.

    Raises:
        UserError: weights that are missing, left over, or of another shape.
    """
    config, weights = head.config, head.weights
    kinds = [kind for kind in KINDS.values()
             if kind.hugging_face.architecture == config.architecture]
    labels = _labels(config, source) if any(kind.labelled for kind in kinds) else ()
    problem = _ONE_NUMBER if config.problem_type == _ONE_NUMBER or len(labels) == 1 else _CLASSES
    kind = next(kind for kind in kinds if kind.hugging_face.problem_type in (None, problem))
    labels = labels if kind.labelled else ()
    form, inputs = kind.hugging_face, config.hidden_size
    *hidden, (output, parts) = form.layers.items()
    sizes = {theirs: inputs for theirs, _ in hidden} | {output: len(parts) * (len(labels) or 1)}
    require_exactly(weights, {
        name: shape for theirs, size in sizes.items()
        for name, shape in ((f"{theirs}.weight", (size, inputs)), (f"{theirs}.bias", (size,)))},
        source)
    found = {}
    for theirs, ours in form.layers.items():
        kernels = np.split(weights[f"{theirs}.weight"].T, len(ours), axis=1)
        biases = np.split(weights[f"{theirs}.bias"], len(ours))
        for name, kernel, bias in zip(ours, kernels, biases, strict=True):
            found |= {f"{HEAD}{name}/kernel": kernel, f"{HEAD}{name}/bias": bias}
    return kind.converted(config.finetuning_task, labels), dict(form.settings), found


def _our_layers(spec: TaskSpec, weights: Weights, source: str) -> Layers:
    """Returns the layers of our head; refuses one that has more or fewer than Hugging Face's."""
    form = KINDS[spec.kind].hugging_face
    own = {name: value for name, value in weights.items() if name.startswith(HEAD)}
    inputs = weights["electra/encoder/layer_0/output/dense/bias"].shape[0]
    *hidden, (_, parts) = form.layers.items()
    sizes = {name: inputs for _, (name,) in hidden if f"{HEAD}{name}/kernel" in own}
    sizes |= dict.fromkeys(parts, len(spec.labels) or 1)
    shapes = {name: shape for layer, size in sizes.items() for name, shape in (
        (f"{HEAD}{layer}/kernel", (inputs, size)), (f"{HEAD}{layer}/bias", (size,)))}
    if own.keys() != shapes.keys() and form.settings:
        settings = " ".join(f"--set {name}={str(value).lower()}"
                            for name, value in form.settings.items())
        raise UserError(f"{source}: {form.architecture} has other layers than this head; train "
                        f"with {settings}.")
    require_exactly(own, shapes, source)
    return {layer: (own[f"{HEAD}{layer}/kernel"], own[f"{HEAD}{layer}/bias"]) for layer in sizes}


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


def _through_gelu(kernel: np.ndarray, bias: np.ndarray, source: str
                  ) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
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
    return (first, first_bias), (second, np.zeros(outputs, np.float32))
