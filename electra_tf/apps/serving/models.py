"""Loads models with their signatures, and replaces old versions of a model by new ones.

Models run in a session, as in TensorFlow Serving. A call of `tf.saved_model.load`'s functions
passes every weight as an argument, which takes 0.7 of 7 ms for one text of 16 tokens.

A new version is loaded while the old one answers, then takes over. If it cannot be loaded, the
server prints one line and keeps serving the old one.
"""

import dataclasses
import gc
import logging
import pathlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 - registers the ops that tokenize
from google.protobuf import json_format, message
from starlette.exceptions import HTTPException

from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.export.checksums import require_intact
from electra_tf.platform import storage
from electra_tf.platform.command_line import pip_install
from electra_tf.platform.errors import UserError
from electra_tf.platform.machine import usable_cores

Arrays = dict[str, np.ndarray]  # By input or output; strings are arrays of `bytes` objects.
DEFAULT_SIGNATURE = "serving_default"
ONNX_FILE = "model.onnx"
_ONLY_VERSION = 1
"""Version of a directory that holds an ONNX file itself."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signature:
    """One function of a model, with the tensors that the SavedModel declares."""

    inputs: Mapping[str, tf.TensorSpec]
    outputs: Mapping[str, tf.TensorSpec]
    function: Callable[..., Sequence[Any]]  # Arguments and results in the order of the mappings.

    def __call__(self, inputs: Arrays) -> Arrays:
        """Returns the outputs, or raises a tf.errors.OpError; threads may call concurrently."""
        values = self.function(*(inputs[name] for name in self.inputs))
        return {name: np.asarray(value, object if spec.dtype == tf.string else None)
                for (name, spec), value in zip(self.outputs.items(), values, strict=True)}

    @property
    def has_rows(self) -> bool:
        """True if every tensor begins with a batch dimension of any size."""
        specs = [*self.inputs.values(), *self.outputs.values()]
        return all(spec.shape.rank and spec.shape[0] is None for spec in specs)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServedModel:
    """A version of a model in memory."""

    version: int
    signatures: Mapping[str, Signature]
    signature_defs: Mapping[str, Any]  # Descriptions of the signatures, in protobuf's JSON.


def error_reason(error: Exception) -> str:
    """Returns what an error says, without TensorFlow's heading and the names of nodes."""
    text = getattr(error, "message", str(error)).strip().removeprefix("Graph execution error:")
    return re.split(r"\s*\[\[", text)[0].strip()


def num_rows(arrays: Arrays) -> int:
    """Returns the largest first dimension, 0 if all are scalars."""
    return max((len(array) for array in arrays.values() if array.ndim), default=0)


def load(version_dir: pathlib.Path, number: int) -> ServedModel:
    """Loads a version, or refuses a damaged one with a `UserError`."""
    if (version_dir / ONNX_FILE).exists():
        try:
            from electra_tf.apps.serving import onnx_models
        except ModuleNotFoundError as error:
            raise UserError(f"{error.name} is not installed: {pip_install('onnx')}") from error
        return onnx_models.load(version_dir, number)
    return load_saved_model(version_dir, number)


def load_saved_model(version_dir: pathlib.Path, number: int) -> ServedModel:
    """Loads a SavedModel, or refuses a damaged one with a `UserError`.

    Ops run concurrently, each on one core, because an exported layer has two independent halves. On
    two cores, ELECTRA-Small answers one text of 16 tokens in 7.8 ms, and in 16.3 ms if every op
    uses both cores.
    """
    require_intact(version_dir)
    tf.get_logger().setLevel(logging.ERROR)  # It warns that sessions belong to TensorFlow 1.
    # The signatures keep the session open.
    session = tf.compat.v1.Session(graph=tf.Graph(), config=tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=usable_cores(), intra_op_parallelism_threads=1))
    signatures = {}
    try:
        with session.graph.as_default():
            definitions = dict(tf.compat.v1.saved_model.load(
                session, [tf.saved_model.SERVING], str(version_dir)).signature_def)
        for key, definition in sorted(definitions.items()):
            if definition.method_name:  # The others initialize.
                inputs, outputs = ({
                    tensor: tf.TensorSpec(
                        tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), tensor)
                    for tensor, info in sorted(tensors.items())}
                    for tensors in (definition.inputs, definition.outputs))
                signatures[key] = Signature(
                    inputs=inputs, outputs=outputs, function=session.make_callable(
                        fetches=[definition.outputs[tensor].name for tensor in outputs],
                        feed_list=[definition.inputs[tensor].name for tensor in inputs]))
    except (OSError, ValueError, LookupError, RuntimeError, message.DecodeError,
            tf.errors.OpError) as error:  # Damaged or missing files, and unknown ops.
        reason = error_reason(error).partition("\n")[0].rstrip(".")
        raise UserError(f"{version_dir} is not a SavedModel that can be served: {reason}; export "
                        "it again, or remove this version.") from error
    if not signatures:
        raise UserError(f"{version_dir} has no signature; export it with signatures=...")
    return ServedModel(
        version=number, signatures=signatures, signature_defs=as_json(definitions))


def as_json(definitions: Mapping[str, message.Message]) -> Mapping[str, Any]:
    """Returns definitions of signatures in protobuf's JSON."""
    return {key: json_format.MessageToDict(
        definition, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        for key, definition in definitions.items()}


@dataclasses.dataclass(kw_only=True)
class Version:
    """A version that was found in a model's directory; it has a model while it is available."""

    number: int
    state: str = "START"  # TensorFlow Serving's name: START, LOADING, AVAILABLE or END.
    error: str = ""
    model: ServedModel | None = None
    files: dict[pathlib.Path, int] = dataclasses.field(default_factory=dict)
    """Modification times, which change while the version is being copied."""


@dataclasses.dataclass(kw_only=True)
class ModelVersions:
    """One model; one thread at a time may refresh it while the event loop reads."""

    name: str
    directory: pathlib.Path
    num_versions: int = 1  # Number of versions to serve, newest first; 0 for all.
    load: Callable[[pathlib.Path, int], ServedModel] = load
    known: dict[int, Version] = dataclasses.field(default_factory=dict)

    def start(self) -> None:
        """Loads the newest versions; raises a UserError if the newest one cannot be loaded."""
        self._scan()
        for version in self._newest(self.known.values()):
            self._try_to_load(version)
        if error := self.known[max(self.known)].error:
            raise UserError(error)

    def refresh(self) -> None:
        """Checks the directory once: loads new versions and unloads replaced ones."""
        try:
            usable = self._scan()
        except (UserError, OSError):
            return  # There is no replacement for the served versions.
        for version in self._newest(usable):
            if not version.model:
                self._try_to_load(version)
                outcome = f"not served: {version.error}" if version.error else "loaded"
                print(f"{self.name}: version {version.number} is {outcome}", file=sys.stderr,
                      flush=True)
        kept = self._newest(version for version in usable if version.model)
        for version in list(self.known.values()):
            if kept and version.model and version not in kept:
                version.state, version.model = "END", None
                gc.collect()  # A graph has reference cycles.
                print(f"{self.name}: version {version.number} is unloaded", file=sys.stderr,
                      flush=True)
            if not version.files and not version.model:
                del self.known[version.number]

    def find(self, number: str | None) -> ServedModel:
        """Returns a version, the newest one for None; HTTPException (404) if it isn't served."""
        served = {str(version.number): version.model for _, version in sorted(self.known.items())
                  if version.model}
        if number is None and served:
            number = list(served)[-1]
        if number in served:
            return served[number]
        raise HTTPException(404, f"Servable not found for request: version {number or 'latest'} of "
                                 f"{self.name}; available: {', '.join(served) or 'none'}")

    def _scan(self) -> list[Version]:
        """Returns the versions that are loaded, or that can be loaded: their files are complete.

        Raises a UserError if the directory has no versions.
        """
        numbers = {int(path.name) for path in (
            self.directory.iterdir() if self.directory.is_dir() else ())
            if re.fullmatch("0|[1-9][0-9]{0,17}", path.name) and path.is_dir()}
        if (self.directory / ONNX_FILE).exists():
            numbers = {_ONLY_VERSION}
        if not numbers:
            raise UserError(f"--model_dir={self.directory} contains no version: a directory whose "
                            "name is a whole number, such as 1, with saved_model.pb or model.onnx "
                            "in it.")
        usable = []
        for number in numbers | self.known.keys():
            version = self.known.setdefault(number, Version(number=number))
            before, version.files = version.files, {
                path: path.stat().st_mtime_ns for path in self._path(number).rglob("*")}
            if version.files != before:
                version.error = ""
            if version.files and (version.model or version.files == before and not version.error):
                usable.append(version)
        return usable

    def _path(self, number: int) -> pathlib.Path:
        has_versions = not (self.directory / ONNX_FILE).exists()
        return self.directory / str(number) if has_versions else self.directory

    def _newest(self, versions: Iterable[Version]) -> list[Version]:
        return sorted(versions, key=lambda version: version.number)[-self.num_versions:]

    def _try_to_load(self, version: Version) -> None:
        version.state = "LOADING"
        try:
            version.model = self.load(self._path(version.number), version.number)
            version.state = "AVAILABLE"
        except UserError as error:
            version.state, version.error = "END", str(error)


def find_models(config: ServerConfig) -> dict[str, ModelVersions]:
    """Returns the models of `--model_dir` by name; `UserError` if it is malformed or remote."""
    models = {}
    for part in config.model_dir.split(","):
        name, _, directory = part.rpartition("=")
        path = storage.require_local(
            storage.path(directory), "--model_dir", "copy the model here first").resolve()
        name = name or path.name
        if not directory or not re.fullmatch("[^/:=]+", name) or name in models:
            raise UserError(
                "--model_dir must be a directory, or name=directory,name=directory with different "
                f"names that contain none of '/:='. Received: {config.model_dir!r}")
        models[name] = ModelVersions(name=name, directory=path, num_versions=config.num_versions)
    return models
