"""The newest version of a SavedModel directory, its signatures ready to be called."""

import dataclasses
import functools
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 - registers the ops that tokenize
from google.protobuf import json_format, message
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from electra_tf.command_line import UserError

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
    function: Callable[..., Mapping[str, tf.Tensor]]

    def __call__(self, inputs: Arrays) -> Arrays:
        """Returns the outputs for checked inputs.

        Raises:
            tf.errors.OpError: the graph refused them.
        """
        tensors = {name: tf.constant(inputs[name], spec.dtype)
                   for name, spec in self.inputs.items()}
        return {name: np.asarray(value.numpy(), object if value.dtype == tf.string else None)
                for name, value in self.function(**tensors).items()}

    @functools.cached_property
    def has_rows(self) -> bool:
        """Whether every tensor begins with a batch dimension of any size."""
        specs = [*self.inputs.values(), *self.outputs.values()]
        return all(spec.shape.rank and spec.shape[0] is None for spec in specs)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A version of a model in memory."""

    name: str
    version: int
    signatures: Mapping[str, Signature]
    signature_defs: Mapping[str, Any]
    """The SavedModel's own description of its signatures, in protobuf's JSON."""


def newest_version(model_dir: pathlib.Path) -> pathlib.Path:
    """Returns the directory below `model_dir` whose name is the largest whole number.

    Raises:
        UserError: there is none.
    """
    if not model_dir.is_dir():
        raise UserError(f"--model_dir={model_dir} isn't a directory; name the one that holds the "
                        "versions 1, 2, ... of a SavedModel.")
    versions = [path for path in model_dir.iterdir() if re.fullmatch("[0-9]+", path.name)]
    if (model_dir / "saved_model.pb").exists():
        raise UserError(f"--model_dir={model_dir} is a version itself (it holds saved_model.pb); "
                        f"move it to {model_dir / '1'}, or name its parent if that is numbered.")
    if not versions:
        raise UserError(f"--model_dir={model_dir} holds no version: a directory whose name is a "
                        "whole number, like 1, with saved_model.pb in it.")
    return max(versions, key=lambda path: int(path.name))


def load(version_dir: pathlib.Path, name: str) -> ServedModel:
    """Loads a SavedModel with the signatures that it was exported with.

    Args:
        version_dir: the directory of one version; its name is the version's number.
        name: what the model is called in addresses.

    Raises:
        UserError: files are missing or damaged, or there is no signature.
    """
    try:
        definitions = _definitions(version_dir)
        loaded = tf.saved_model.load(str(version_dir))
    except _BROKEN as error:
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise UserError(f"{version_dir} is not a SavedModel that can be loaded: {reason}; export "
                        "it again, or remove this version.") from error
    if not loaded.signatures:
        raise UserError(f"{version_dir} has no signature; export it with signatures=...")
    return ServedModel(
        name=name, version=int(version_dir.name),
        signatures={key: _signature(key, definitions[key], function)
                    for key, function in sorted(loaded.signatures.items())},
        signature_defs={key: json_format.MessageToDict(
            definition, preserving_proto_field_name=True,
            always_print_fields_with_no_presence=True) for key, definition in definitions.items()})


def _definitions(version_dir: pathlib.Path) -> dict[str, meta_graph_pb2.SignatureDef]:
    content = (version_dir / "saved_model.pb").read_bytes()
    graphs = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    serving = [graph for graph in graphs if "serve" in graph.meta_info_def.tags]
    if not serving:
        raise ValueError('saved_model.pb holds no graph tagged "serve".')
    return dict(serving[0].signature_def)


def _signature(
    name: str, definition: meta_graph_pb2.SignatureDef, function: Callable
) -> Signature:
    inputs, outputs = (
        {key: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), key)
         for key, info in sorted(infos.items())}
        for infos in (definition.inputs, definition.outputs))
    return Signature(name=name, inputs=inputs, outputs=outputs, function=function)
