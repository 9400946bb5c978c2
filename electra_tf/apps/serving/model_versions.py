"""Loads the versions of a model that are served, and replaces old versions by new ones.

A new version is loaded while the old one answers, then takes over. If it cannot be loaded, the
server prints one line and keeps serving the old one.
"""

import dataclasses
import gc
import pathlib
import re
import sys
from collections.abc import Callable, Iterable

from starlette.exceptions import HTTPException

from electra_tf.apps.serving import saved_models
from electra_tf.apps.serving.saved_models import ServedModel
from electra_tf.apps.serving.settings import ServerConfig
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError


@dataclasses.dataclass(kw_only=True)
class Version:
    """A version that was found in a model's directory; it has a model while it is available."""

    number: int
    state: str = "START"
    """TensorFlow Serving's name: START (not loaded yet), LOADING, AVAILABLE or END."""
    error: str = ""
    model: ServedModel | None = None
    files: dict[pathlib.Path, int] = dataclasses.field(default_factory=dict)
    """Modification times, which change while the version is being copied."""


@dataclasses.dataclass(kw_only=True)
class ModelVersions:
    """One model; one thread at a time may refresh it while the event loop reads."""

    name: str
    directory: pathlib.Path
    num_versions: int = 1
    """Number of versions to serve, newest first; 0 for all."""
    load: Callable[[pathlib.Path, str], ServedModel] = saved_models.load
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
                self._print(f"version {version.number} is "
                            f"{f'not served: {version.error}' if version.error else 'loaded'}")
        kept = self._newest(version for version in usable if version.model)
        for version in list(self.known.values()):
            if kept and version.model and version not in kept:
                version.state, version.model = "END", None
                gc.collect()  # A graph has reference cycles.
                self._print(f"version {version.number} is unloaded")
            if not version.files and not version.model:
                del self.known[version.number]

    def find(self, number: str | None) -> ServedModel:
        """Returns a version, the newest one for None; HTTPException (404) if it isn't served."""
        served = {str(each): version.model for each, version in sorted(list(self.known.items()))
                  if version.model}
        if number is None and served:
            number = list(served)[-1]
        if number in served:
            return served[number]
        raise HTTPException(404, f"Servable not found for request: version {number or 'latest'} of "
                                 f"{self.name}; available: {', '.join(served) or 'none'}")

    def _scan(self) -> list[Version]:
        """Returns the versions that are loaded, or that can be loaded: their files are complete."""
        usable = []
        for number in _numbers(self.directory) | self.known.keys():
            version = self.known.setdefault(number, Version(number=number))
            before, version.files = version.files, {
                path: path.stat().st_mtime_ns for path in (self.directory / str(number)).rglob("*")}
            if version.files != before:
                version.error = ""
            if version.files and (version.model or version.files == before and not version.error):
                usable.append(version)
        return usable

    def _newest(self, versions: Iterable[Version]) -> list[Version]:
        return sorted(versions, key=lambda version: version.number)[-self.num_versions:]

    def _try_to_load(self, version: Version) -> None:
        version.state = "LOADING"
        try:
            version.model = self.load(self.directory / str(version.number), self.name)
            version.state = "AVAILABLE"
        except UserError as error:
            version.state, version.error = "END", str(error)

    def _print(self, line: str) -> None:
        print(f"{self.name}: {line}", file=sys.stderr, flush=True)


def _numbers(model_dir: pathlib.Path) -> set[int]:
    """Returns the versions in a directory; raises a UserError if there are none."""
    found = {int(path.name) for path in (model_dir.iterdir() if model_dir.is_dir() else ())
             if re.fullmatch("0|[1-9][0-9]{0,17}", path.name) and path.is_dir()}
    if not found:
        raise UserError(f"--model_dir={model_dir} contains no version: a directory whose name is a "
                        "whole number, such as 1, with saved_model.pb in it.")
    return found


def of_config(config: ServerConfig) -> dict[str, ModelVersions]:
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
