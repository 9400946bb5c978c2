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
SETUP = {"wandb": "Run `wandb login`, or set WANDB_MODE=offline.", "mlflow": "Set "
         "MLFLOW_TRACKING_URI to a server, or run `pip install mlflow` for a local database."}


def errors_of(name: str) -> tuple[type[Exception], ...]:
    """Returns the errors of a tracker; `ModuleNotFoundError` if it isn't installed."""
    if name == "mlflow":
        return OSError, ValueError, importlib.import_module("mlflow.exceptions").MlflowException
    return (OSError, ValueError, importlib.import_module("wandb.errors").Error,
            importlib.import_module("wandb.sdk.mailbox").MailboxClosedError)


def begin(name: str, run_id: str | None, title: str, group: str, settings: Mapping[str, Any],
          facts: Mapping[str, Any]) -> tuple[str, Log, Callable[[bool], None]]:
    """Returns the id of a new or resumed run, its `Log`, and a function that ends it."""
    tracker = importlib.import_module(name)
    if name == "wandb":
        # wandb shows nested settings, a section each.
        sections: dict[str, dict[str, Any]] = {key.partition(".")[0]: {} for key in settings}
        for key, value in settings.items():
            sections[key.partition(".")[0]][key.partition(".")[2]] = value
        run = tracker.init(id=run_id, name=title, group=group, resume="allow", config={
            **sections, **facts}, reinit="create_new")
        # A resumed run repeats the steps after its checkpoint.
        return (run.id, lambda step, values: step >= run.step and run.log(values, step=step),
                lambda succeeded: run.finish(exit_code=int(not succeeded)))
    # MLflow has flat parameters.
    run = tracker.start_run(run_id, run_name=title, tags={"group": group}, nested=True).info.run_id
    if run_id is None:  # Parameters can't be changed later.
        tracker.log_params({**settings, **facts})
    return (run, lambda step, values: tracker.log_metrics(values, step, run_id=run),
            lambda succeeded: tracker.end_run("FINISHED" if succeeded else "FAILED"))


@contextlib.contextmanager
def tracked(names: Iterable[str], ids_file: Path, config: Any, facts: Mapping[str, Any],
            part: str = "") -> Iterator[Log]:
    """Yields a function that logs to all trackers in `names`, in a run named like the directory.

    `config` and `facts` describe the run; `part` names one of several runs of the directory, which
    form a group. `ids_file` in the directory has the ids of runs, which a resumed training
    continues. `UserError` if a tracker refuses the first run. A later failure prints a warning.
    """
    # Runs that this directory has begun.
    ids = strict_json.read(ids_file, dict[str, str], fix="remove it to report to new runs.") if (
        ids_file.exists()) else {}
    group, runs, failed, has_begun, succeeded = str(ids_file.parent), {}, set(), bool(ids), False

    # A tracker's failure ends the command before training, and later only this tracker's reports.
    def attempt(name: str, action: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return action(*arguments)
        except errors_of(name) as error:
            line = f"--report_to={name}: {one_line(str(error), 300).rstrip('.')}."
            if not has_begun:
                raise UserError(f"{line} {SETUP[name]}") from error
            if name not in failed:
                print(f"warning  {line} The training goes on, but is no longer reported there. If "
                      f"its run was deleted, remove {ids_file}.", flush=True)
            failed.add(name)

    def log(step: int, values: Mapping[str, float]) -> None:
        for name in runs.keys() - failed:
            attempt(name, runs[name][1], step, dict(values))

    # New or resumed runs, the training, and their end.
    try:
        for name in dict.fromkeys(names):
            key = f"{name} {part}".strip()
            if run := attempt(name, begin, name, ids.get(key), f"{group} {part}".strip(), group,
                              flatten(config), facts):
                runs[name], ids[key] = run, run[0]
        if runs:
            write_json(ids_file, ids)
        has_begun = True
        yield log
        succeeded = True
    finally:
        for name, (_, _, end) in runs.items():
            attempt(name, end, succeeded)
