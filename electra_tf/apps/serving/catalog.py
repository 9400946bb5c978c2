"""All models of a server, by name."""

import asyncio
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from electra_tf.apps.serving.errors import RequestError
from electra_tf.apps.serving.model_versions import ModelSource, ModelVersions, Version
from electra_tf.platform.errors import UserError


class Catalog:
    """Finds models, and keeps looking for new versions."""

    def __init__(self, models: Sequence[ModelVersions]):
        """Takes models with names of their own, the first of which the page shows."""
        self.models = {model.source.name: model for model in models}

    def find(self, name: str) -> ModelVersions:
        """Returns a model.

        Raises:
            RequestError: there is none of this name.
        """
        if name not in self.models:
            raise RequestError(f"Servable not found for request: {name[:100]!r}; this server has "
                               f"{', '.join(map(repr, self.models))}", 404)
        return self.models[name]

    async def keep_looking(self, seconds: float) -> None:
        """Looks at all directories, one after the other, until it is cancelled."""
        while True:
            await asyncio.sleep(seconds)
            for model in self.models.values():
                await model.refresh()


def status(versions: Sequence[Version]) -> dict[str, Any]:
    """Returns TensorFlow Serving's description of states, newest version first."""
    return {"model_version_status": [
        {"version": str(version.number), "state": version.state.upper(),
         "status": {"error_code": "UNKNOWN" if version.error else "OK",
                    "error_message": version.error}}
        for version in sorted(versions, key=lambda each: -each.number)]}


def sources(model_dir: str, name: str | None, num_versions: int,
            local: Callable[[str], pathlib.Path]) -> list[ModelSource]:
    """Returns what `--model_dir` names: one directory, or `name=directory,name=directory`.

    Args:
        model_dir: the flag.
        name: `--name`, for one directory; the directory's own if None.
        num_versions: of every model.
        local: makes a path of a string.

    Raises:
        UserError: no name or no directory, a name that no address can have, or one twice.
    """
    several = "=" in model_dir and not local(model_dir).exists()
    if several and name is not None:
        raise UserError("--name is for one --model_dir; with several, write name=directory.")
    pairs = [part.partition("=")[::2] for part in model_dir.split(",")] if several else [
        (name, model_dir)]
    found = []
    for called, directory in pairs:
        if not directory:
            raise UserError(f"--model_dir must be a directory, or name=directory,... Received: "
                            f"{model_dir!r}")
        path = local(directory).resolve()
        found.append(ModelSource(name=_checked(path.name if called is None else called),
                                 directory=path, num_versions=num_versions))
    names = [source.name for source in found]
    if twice := sorted({each for each in names if names.count(each) > 1}):
        raise UserError(f"--model_dir has the name {twice[0]!r} twice; names must differ.")
    return found


def _checked(name: str) -> str:
    if not name or set(name) & set("/:") or not name.isprintable():
        raise UserError("--name must have at least one character, and no '/' or ':'. "
                        f"Received: {name!r}")
    return name
