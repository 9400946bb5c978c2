"""Experiment trackers: Weights & Biases and MLflow receive the settings and metrics of a run."""

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from electra_tf.config.overrides import flatten
from electra_tf.core import strict_json
from electra_tf.core.atomic_file import write_json
from electra_tf.core.errors import UserError, one_line
from electra_tf.core.storage import Path

Log = Callable[[int, Mapping[str, float]], None]
"""A function of a step and the values of metrics by name, such as "train/loss"."""


class WandbRun:
    """A run in Weights & Biases: a new one, or that of an id."""

    ERRORS = {"wandb.errors": "Error", "wandb.sdk.mailbox": "MailboxClosedError"}
    SETUP = "Run `wandb login`, or set WANDB_MODE=offline"

    def __init__(self, run_id: str | None, name: str, group: str, config: Any, facts: Any):
        import wandb

        sections: dict[str, dict[str, Any]] = {}
        for setting, value in flatten(config).items():
            section, _, field = setting.partition(".")
            sections.setdefault(section, {})[field] = value
        self._run = wandb.init(id=run_id, name=name, group=group, resume="allow",
                               reinit="create_new", config=sections | facts)
        self.run_id = self._run.id

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Reports values of a step, unless a later one was reported."""
        if step >= self._run.step:  # A resumed run repeats the steps after its checkpoint.
            self._run.log(dict(values), step=step)

    def finish(self, succeeded: bool) -> None:
        """Ends the run, as finished or failed."""
        self._run.finish(exit_code=0 if succeeded else 1)


class MLflowRun:
    """A run in MLflow: a new one, or that of an id."""

    ERRORS = {"mlflow.exceptions": "MlflowException"}
    SETUP = "Set MLFLOW_TRACKING_URI to a server, or run `pip install mlflow` for a local database"

    def __init__(self, run_id: str | None, name: str, group: str, config: Any, facts: Any):
        import mlflow

        self._mlflow = mlflow
        self.run_id = mlflow.start_run(
            run_id, run_name=name, tags={"group": group}, nested=True).info.run_id
        if run_id is None:  # Parameters can't be changed later.
            mlflow.log_params(flatten(config) | facts)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Reports values of a step."""
        self._mlflow.log_metrics(dict(values), step, run_id=self.run_id)

    def finish(self, succeeded: bool) -> None:
        """Ends the run, as finished or failed."""
        self._mlflow.end_run("FINISHED" if succeeded else "FAILED")


TRACKERS = {"wandb": WandbRun, "mlflow": MLflowRun}


def require_installed(names: Iterable[str]) -> None:
    """Raises `ModuleNotFoundError` for a tracker that isn't installed."""
    for name in names:
        _errors_of(name)


def _errors_of(name: str) -> tuple[type[Exception], ...]:
    return (OSError, ValueError, *(getattr(importlib.import_module(module), error)
                                   for module, error in TRACKERS[name].ERRORS.items()))


@contextlib.contextmanager
def tracked(names: Iterable[str], ids_file: Path, config: Any, facts: Mapping[str, Any],
            part: str = "") -> Iterator[Log]:
    """Yields a function that logs to all trackers in `names`, in a run named like the directory.

    `config` and `facts` describe the run; `part` names one of several runs of the directory, which
    form a group. `ids_file` in the directory has the ids of runs, which a resumed training
    continues. `UserError` if a tracker refuses the first run. A later failure prints a warning.
    """
    ids = strict_json.read(ids_file, dict[str, str], fix="remove it to report to new runs.") if (
        ids_file.exists()) else {}
    group, runs, failed = str(ids_file.parent), {}, set()
    has_begun = bool(ids)

    def attempt(name: str, action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except _errors_of(name) as error:
            line = f"--report_to={name}: {one_line(str(error), 300).rstrip('.')}."
            if not has_begun:
                raise UserError(f"{line} {TRACKERS[name].SETUP}.") from error
            if name not in failed:
                print(f"warning  {line} The training goes on, but is no longer reported there. If "
                      f"its run was deleted, remove {ids_file}.", flush=True)
            failed.add(name)

    def log(step: int, values: Mapping[str, float]) -> None:
        for name in runs.keys() - failed:
            attempt(name, runs[name].log, step, values)

    succeeded = False
    try:
        for name in dict.fromkeys(names):
            key = f"{name} {part}".strip()
            run = attempt(name, TRACKERS[name], ids.get(key), f"{group} {part}".strip(), group,
                          config, dict(facts))
            if run is not None:
                runs[name], ids[key] = run, run.run_id
        if runs:
            write_json(ids_file, ids)
        has_begun = True
        yield log
        succeeded = True
    finally:
        for name, run in runs.items():
            attempt(name, run.finish, succeeded)
