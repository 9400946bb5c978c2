"""Weights by their full names: what checkpoints of any kind have in common.

"electra/..." is the encoder that is pre-trained, "generator/...", "generator_predictions/..." and
"discriminator_predictions/..." are the rest of pre-training, "head/..." is a task's output layer.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.directory import Checkpoint
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.run_directory import CHECKPOINTS
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

Weights = Mapping[str, np.ndarray]

ENCODER = "electra/"
GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""Key of the objects of a checkpoint of TensorFlow 2."""
_SLOTS = ("/adam_m", "/adam_v")


def read_weights(model_dir: Path, wanted: Callable[[str], bool] = lambda name: True) -> Weights:
    """Returns weights of the checkpoint in use of a run, without the optimizer's slots.

    `wanted` selects names.

    Raises:
        UserError: there is no checkpoint, or it can't be read.
    """
    return _read(model_dir, lambda name: (
        "/" in name and not name.endswith(_SLOTS) and wanted(name)))


def checkpoint_in_use(model_dir: Path) -> Checkpoint:
    """Returns the whole checkpoint that a run's directory stands for.

    It is the newest, in fine-tuning the one that results.json names: its scores are of these
    weights, whatever a trial that was killed left beside them.

    Raises:
        UserError: there is none, or it is damaged.
    """
    number = run_directory.checkpoint_of_results(model_dir)
    if number is not None:
        return checkpoints.of_step(model_dir / CHECKPOINTS, number)
    found = checkpoints.newest(model_dir / CHECKPOINTS)
    if found is None:
        raise UserError(f"{model_dir} holds no checkpoint; name the --model_dir of a run that has "
                        "one.")
    return found


def read_step(model_dir: Path) -> int:
    """Returns the step of a run's checkpoint in use; `UserError` as `read_weights`."""
    return int(_read(model_dir, lambda name: name == "step")["step"])


def write_weights(weights: Weights, model_dir: Path) -> None:
    """Writes a checkpoint of step 0 that `read_weights` reads; `UserError` if it can't."""
    holder = tf.Module()
    holder.weights = [tf.Variable(value, name=name) for name, value in weights.items()]
    step = tf.Variable(0, dtype=tf.int64, name="step")
    CheckpointManager(tf.train.Checkpoint(weights=holder, step=step), model_dir / CHECKPOINTS,
                      interval=1, keep=1).save(0)


def assign_weights(variables: Iterable[tf.Variable], weights: Weights, source: str) -> None:
    """Sets every variable from the weight of its full name; all of them, or none.

    Raises:
        UserError: weights that are missing, or of another shape; names them.
    """
    by_name = {variable.name.split(":")[0]: variable for variable in variables}
    missing = sorted(by_name.keys() - weights.keys())
    if missing:
        raise UserError(f"{source} has no weights for {checkpoints.listed(missing)}: it is of "
                        "another model.")
    other = [f"{name} ({_shape(weights[name].shape)} there, {_shape(variable.shape)} here)"
             for name, variable in by_name.items() if weights[name].shape != tuple(variable.shape)]
    if other:
        raise UserError(f"{source} is of another size or vocabulary: {checkpoints.listed(other)}.")
    for name, variable in by_name.items():
        variable.assign(weights[name])


def assign_parts(variables: Iterable[tf.Variable], weights: Weights, source: str) -> list[str]:
    """Sets the variables of all parts that the weights have: each part whole, or not at all.

    A part is the first component of a name, "generator" for example. The encoder must be there.

    Returns:
        The parts of the variables that the weights don't have, which keep their values.

    Raises:
        UserError: no encoder, a part with gaps, or a weight of another shape.
    """
    variables = list(variables)
    there = {_part(name) for name in weights} | {_part(ENCODER)}
    assign_weights([one for one in variables if _part(one.name) in there], weights, source)
    return sorted({_part(one.name) for one in variables} - there)


def _part(name: str) -> str:
    return name.split("/")[0]


def _read(model_dir: Path, wanted: Callable[[str], bool]) -> Weights:
    found = checkpoint_in_use(model_dir)
    _say_once(found.note)
    with reading(found.prefix) as reader:
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(reader.get_tensor(GRAPH))
        keys = {value.full_name: value.checkpoint_key
                for node in graph.nodes for value in node.attributes}
        return {name: reader.get_tensor(key) for name, key in keys.items() if wanted(name)}


@contextlib.contextmanager
def reading(prefix: str) -> Iterator[Any]:
    """Yields TensorFlow's reader of a checkpoint; `UserError` if the checkpoint is damaged."""
    try:
        with checkpoints.found_by_tensorflow(prefix) as path:
            yield tf.compat.v1.train.NewCheckpointReader(path)
    except UserError:
        raise
    except (tf.errors.OpError, ValueError, IndexError) as error:  # IndexError: cut short.
        raise UserError(f"the checkpoint {prefix} can't be read: "
                        f"{' '.join(str(error).split())[:200]}") from error


@functools.cache
def _say_once(note: str) -> None:
    if note:
        print(f"note: {note}", file=sys.stderr, flush=True)


def _shape(shape: Iterable[int]) -> str:
    return " x ".join(map(str, shape))
