"""Tiny networks with weights that are a function of their names, and heads of fine-tuning."""

import dataclasses

import numpy as np

from electra_tf.checkpoints.weights import ENCODER
from electra_tf.config.finetuning import TaskConfig
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.parameter_shapes import vocabulary_head
from electra_tf.modeling.specs import discriminator, own_generator
from electra_tf.tasks.kinds.base import TaskObjective
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Kind, TaskSpec
from electra_tf.text.normalization import UNCASED, Normalization, TextSettings
from electra_tf.text.vocabulary import Vocabulary
from tests.support import seeded, tiny_records, tiny_run

VOCABULARY = tiny_records.VOCABULARY
NO_ANSWERABILITY = {"task.ends_given_starts": False, "task.answerability": False}


def pretrained(vocabulary: Vocabulary = VOCABULARY, *,
               normalization: Normalization = UNCASED, **changes) -> Checkpoint:
    """Two networks; `model__field=value` changes one of `tiny_run.SETTINGS`."""
    model = tiny_run.config(model__vocab_size=vocabulary.size, **changes).model
    shapes = discriminator(model.discriminator).weights | own_generator(model)
    return Checkpoint(
        source="the tiny networks", config=model,
        text=TextSettings(vocabulary=vocabulary, normalization=normalization),
        weights={name: seeded.weight(name, shape) for name, shape in shapes.items()})


def with_restorer(checkpoint: Checkpoint) -> Checkpoint:
    """The same networks, with a second head of the discriminator, as objective.name=electra_lm."""
    head = vocabulary_head("restorer_predictions", checkpoint.config.discriminator)
    return dataclasses.replace(checkpoint, objective="electra_lm", weights={
        **checkpoint.weights, **{name: seeded.weight(name, shape) for name, shape in head.items()}})


def finetuned(checkpoint: Checkpoint, kind: Kind, labels: tuple[str, ...], head: dict[str, int],
              *, settings: dict | None = None, scale: float = 1.0,
              offset: float = 0.0) -> Checkpoint:
    """The encoder below a head: dense layers by name, each with so many outputs."""
    weights = {name: value for name,
               value in checkpoint.weights.items() if name.startswith(ENCODER)}
    for name, outputs in head.items():
        for leaf, shape in (("kernel", (32, outputs)), ("bias", (outputs,))):
            weights[f"head/{name}/{leaf}"] = seeded.weight(f"head/{name}/{leaf}", shape)
    task = TaskSpec(name=str(kind), kind=kind, labels=labels, metrics=("accuracy",), scale=scale,
                    offset=offset)
    return dataclasses.replace(checkpoint, weights=weights, task=task,
                               task_settings=settings or {})


def task_objective(kind: Kind, outputs: int = 0, *, scale: float = 1.0, offset: float = 0.0,
                   **config) -> TaskObjective:
    """The objective of a task with so many labels; `config` has fields of `TaskConfig`."""
    spec = TaskSpec(name=str(kind), kind=kind, labels=tuple(map(str, range(outputs))),
                    metrics=("accuracy",), scale=scale, offset=offset)
    return KINDS[kind].objective(spec, TaskConfig(**config))


def without(checkpoint: Checkpoint, *parts: str, **changes) -> Checkpoint:
    """Networks that lack the weights whose names begin with one of these."""
    return dataclasses.replace(checkpoint, **changes, weights={
        name: value for name, value in checkpoint.weights.items() if not name.startswith(parts)})


def require_equal_weights(first: Checkpoint, second: Checkpoint) -> None:
    """Fails unless two networks have the same weights, bit for bit."""
    assert first.weights.keys() == second.weights.keys()
    for name, value in first.weights.items():
        np.testing.assert_array_equal(second.weights[name], value)
