"""The versions in a SavedModel directory, and one of them with its signatures ready to be called.

Models run in a session, as in TensorFlow Serving. A call of what `tf.saved_model.load` returns
hands over every weight as an argument: 0.7 ms of the 7 for one text of 16 tokens.
"""

import dataclasses
import functools
import logging
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 - registers the ops that tokenize
from google.protobuf import json_format, message
from tensorflow.core.protobuf import meta_graph_pb2

from electra_tf.platform.errors import UserError

Arrays = dict[str, np.ndarray]
"""One array per input or output; strings are arrays of `bytes` objects."""

DEFAULT_SIGNATURE = "serving_default"

# What damaged files were seen to raise: cut, empty or missing ones, and graphs with unknown ops.
_BROKEN = (OSError, ValueError, LookupError, RuntimeError, message.DecodeError, tf.errors.OpError)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signature:
    """One function of a model, with its tensors as the SavedModel declares them."""

    name: str
    inputs: Mapping[str, tf.TensorSpec]
    outputs: Mapping[str, tf.TensorSpec]
    function: Callable[..., Sequence[Any]]
    """Takes the inputs and returns the outputs, in the order of these two; arrays, and scalars of
    NumPy and Python."""

    def __call__(self, inputs: Arrays) -> Arrays:
        """Returns the outputs for checked inputs; threads may call side by side.

        Raises:
            tf.errors.OpError: the graph refused them.
        """
        values = self.function(*(inputs[name] for name in self.inputs))
        return {name: np.asarray(value, object if spec.dtype == tf.string else None)
                for (name, spec), value in zip(self.outputs.items(), values, strict=True)}

    @functools.cached_property
    def has_rows(self) -> bool:
        """Whether every tensor begins with a batch dimension of any size."""
        specs = [*self.inputs.values(), *self.outputs.values()]
        return all(spec.shape.rank and spec.shape[0] is None for spec in specs)

    @functools.cached_property
    def has_fixed_widths(self) -> bool:
        """Whether all dimensions of the outputs but the first are known beforehand."""
        return self.has_rows and all(spec.shape[1:].is_fully_defined()
                                     for spec in self.outputs.values())


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A version of a model in memory."""

    name: str
    version: int
    signatures: Mapping[str, Signature]
    signature_defs: Mapping[str, Any]
    """The SavedModel's own description of its signatures, in protobuf's JSON."""


def versions(model_dir: pathlib.Path) -> dict[int, pathlib.Path]:
    """Returns the directories below `model_dir` whose names are whole numbers, by number.

    Raises:
        UserError: there is none.
    """
    if not model_dir.is_dir():
        raise UserError(f"--model_dir={model_dir} isn't a directory; name the one that holds the "
                        "versions 1, 2, ... of a SavedModel.")
    found = {int(path.name): path for path in sorted(model_dir.iterdir())
             if re.fullmatch("[0-9]{1,18}", path.name) and path.is_dir()}
    if (model_dir / "saved_model.pb").exists():
        raise UserError(f"--model_dir={model_dir} is a version itself (it holds saved_model.pb); "
                        f"move it to {model_dir / '1'}, or name its parent if that is numbered.")
    if not found:
        raise UserError(f"--model_dir={model_dir} holds no version: a directory whose name is a "
                        "whole number, like 1, with saved_model.pb in it.")
    return found


def newest_version(model_dir: pathlib.Path) -> pathlib.Path:
    """Returns the directory below `model_dir` whose name is the largest whole number.

    Raises:
        UserError: there is none.
    """
    found = versions(model_dir)
    return found[max(found)]


def load(version_dir: pathlib.Path, name: str,
         threads: tf.compat.v1.ConfigProto | None = None) -> ServedModel:
    """Loads a SavedModel with the signatures that it was exported with.

    Args:
        version_dir: the directory of one version; its name is the version's number.
        name: what the model is called in addresses.
        threads: TensorFlow's; its own choice if None.

    Raises:
        UserError: files are missing or damaged, or there is no signature.
    """
    # Closed when the last signature is gone.
    session = tf.compat.v1.Session(graph=tf.Graph(), config=threads)
    try:
        with session.graph.as_default(), _no_advice():
            definitions = dict(tf.compat.v1.saved_model.load(
                session, [tf.saved_model.SERVING], str(version_dir)).signature_def)
        signatures = {key: _signature(key, definition, session)
                      for key, definition in sorted(definitions.items())
                      if definition.method_name}  # The others initialize.
    except _BROKEN as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise UserError(f"{version_dir} is not a SavedModel that can be loaded: {reason}; export "
                        "it again, or remove this version.") from error
    if not signatures:
        raise UserError(f"{version_dir} has no signature; export it with signatures=...")
    return ServedModel(
        name=name, version=int(version_dir.name), signatures=signatures,
        signature_defs={key: json_format.MessageToDict(
            definition, preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True) for key, definition in definitions.items()})


@contextmanager
def _no_advice() -> Iterator[None]:
    """TensorFlow warns that sessions are of its first version."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _signature(name: str, definition: meta_graph_pb2.SignatureDef,
               session: tf.compat.v1.Session) -> Signature:
    inputs, outputs = (
        {key: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), key)
         for key, info in sorted(infos.items())}
        for infos in (definition.inputs, definition.outputs))
    function = session.make_callable(
        fetches=[definition.outputs[key].name for key in outputs],
        feed_list=[definition.inputs[key].name for key in inputs])
    return Signature(name=name, inputs=inputs, outputs=outputs, function=function)
