"""Reads, checks and assigns weights by their full names.

"electra/..." is the encoder that is pre-trained, "generator/...", "generator_predictions/..." and
"discriminator_predictions/..." are the rest of pre-training, "head/..." is a task's output layer.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from electra_tf.checkpoints import checkpoint_files
from electra_tf.checkpoints.run_directory import CHECKPOINTS, checkpoint_of_results
from electra_tf.core.errors import UserError, note_once, tensorflow_reason
from electra_tf.core.storage import Path
from electra_tf.modeling import parameter_shapes
from electra_tf.modeling.parameter_shapes import Shapes

Weights = Mapping[str, np.ndarray]

ENCODER = f"{parameter_shapes.ENCODER}/"
SLOTS = ("/adam_m", "/adam_v", "/muon_m")
AVERAGE = "/average"
"""Last parts of the names of the optimizer's slots, and of an average of weights."""


def read_checkpoint(model_dir: Path) -> tuple[Weights, int]:
    """Returns the weights, without the optimizer's slots, and the step of `checkpoint_in_use`.

    Weights of which the checkpoint has an average are the averages, and a line says so.
    """
    # The object graph has every variable's name and the key of its value.
    with open_reader(checkpoint_in_use(model_dir)) as reader:
        graph = trackable_object_graph_pb2.TrackableObjectGraph.FromString(
            reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH"))
        keys = {value.full_name: value.checkpoint_key
                for node in graph.nodes for value in node.attributes}
        averages = {name.removesuffix(AVERAGE): keys.pop(name)
                    for name in list(keys) if name.endswith(AVERAGE)}
        if averages:
            note_once(f"{model_dir}: the weights are their averages over training steps, as "
                      "optimizer.average_decay was set")
        weights = {name: reader.get_tensor(key) for name, key in (keys | averages).items()
                   if "/" in name and not name.endswith(SLOTS)}
        return weights, int(reader.get_tensor(keys["step"]))


def checkpoint_in_use(model_dir: Path) -> str:
    """Returns the prefix of a run's checkpoint: the newest, or the one that results.json names.

    The scores in results.json are of these weights; a killed trial can have left newer ones.
    Raises `UserError` if there is no checkpoint, or it is damaged.
    """
    # The one of the scores in results.json, which must be intact, or the newest intact one.
    directory = model_dir / CHECKPOINTS
    step = checkpoint_of_results(model_dir)
    if step is not None:
        checkpoint_files.require_intact(directory, step)
    elif (step := checkpoint_files.newest_step(directory)) is None:
        raise UserError(f"{model_dir} holds no checkpoint yet; train first, or name the "
                        "--model_dir of a trained run.")
    return checkpoint_files.prefix(directory, step)


@contextlib.contextmanager
def open_reader(prefix: str) -> Iterator[Any]:
    """Yields TensorFlow's reader of a checkpoint; `UserError` if the checkpoint is damaged."""
    try:
        yield tf.compat.v1.train.NewCheckpointReader(prefix)
    except UserError:
        raise
    except (tf.errors.OpError, ValueError, IndexError) as error:  # IndexError: cut short.
        raise UserError(f"the checkpoint {prefix} can't be read: "
                        f"{tensorflow_reason(error)}") from error


def assign_weights(variables: Iterable[tf.Variable], weights: Weights, source: str) -> None:
    """Sets every variable to the weight of its full name; sets none if one raises `UserError`."""
    by_name = {variable.name.split(":")[0]: variable for variable in variables}
    require_exactly({name: weights[name] for name in by_name.keys() & weights.keys()},
                    {name: tuple(variable.shape) for name, variable in by_name.items()}, source)
    for name, variable in by_name.items():
        variable.assign(weights[name])


def assign_parts(variables: Iterable[tf.Variable], weights: Weights, source: str) -> list[str]:
    """Sets the variables of all parts that the weights have: each part whole, or not at all.

    A part is the first component of a name, such as "generator"; the encoder must be there.
    Returns the parts that the weights don't have, whose variables keep their values.
    """
    # Variables by the first component of their names; the parts that the weights have.
    by_part: dict[str, list[tf.Variable]] = {}
    for variable in variables:
        by_part.setdefault(variable.name.split("/")[0], []).append(variable)
    stored = {name.split("/")[0] for name in weights} | {parameter_shapes.ENCODER}
    assign_weights([variable for part in by_part.keys() & stored for variable in by_part[part]],
                   weights, source)
    return sorted(by_part.keys() - stored)


def require_exactly(weights: Weights, shapes: Shapes, source: str) -> None:
    """Raises a `UserError` that names weights that are missing, unknown or of another shape."""
    # All differences in one message, each kind with its first five names.
    misshapen = [f"{name} {weights[name].shape} instead of {shapes[name]}"
                 for name in shapes.keys() & weights.keys() if weights[name].shape != shapes[name]]
    problems = [f"{words.format('weight' + 's' * (len(names) > 1), number=len(names))}: "
                f"{checkpoint_files.first_five(sorted(names))}"
                for words, names in (
                    ("lacks {number} {}", shapes.keys() - weights.keys()),
                    ("has {number} unexpected {}", weights.keys() - shapes.keys()),
                    ("has {number} {} of another shape", misshapen)) if names]
    if problems:
        raise UserError(f"{source} {'; it '.join(problems)}; if the settings are another "
                        "model's, use those that were saved with these weights.")
