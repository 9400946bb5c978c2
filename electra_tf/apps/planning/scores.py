"""What models cost and score: the literature's, from its table, and the user's own runs."""

import re
from collections.abc import Sequence
from typing import Any

from electra_tf.apps.planning.workload import Workload
from electra_tf.checkpoints.run_directory import SETTINGS_FILE, read_identity, settings_of
from electra_tf.config.overrides import override
from electra_tf.config.pretraining import PretrainingConfig
from electra_tf.finetuning.results import Results, glue_average
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError, one_line, shown
from electra_tf.platform.storage import Path
from electra_tf.reporting.scores import KINDS, OWN, Point
from electra_tf.tasks import glue, tables

AVERAGED = tuple(name for name in glue.TASKS if name != "wnli")
"""Tasks of the paper's average on GLUE's development sets."""
_LONGEST_NAME = 40
"""Characters of a model's name in the picture."""
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?(e[0-9]{1,2})?", re.ASCII)


def literature(path: Path, column: str) -> list[Point]:
    """Returns the models of a table that have a score; docs/literature.csv is ours.

    Args:
        path: of a table with columns model, kind, train_flops and of scores in per cent.
        column: of the score.

    Raises:
        UserError: it can't be read, or a row has no such model.
    """
    points = []
    for row in tables.read_rows(path):
        if row.text("kind") not in KINDS:
            raise row.error(f"'kind' must be one of {', '.join(KINDS)}. Received: "
                            f"{shown(row.text('kind'))}")
        numbers = {name: row.text(name) for name in ("train_flops", column) if row.text(name)}
        for name, text in numbers.items():
            if not _NUMBER.fullmatch(text) or float(text) == 0.0:
                raise row.error(f"{name!r} must be a number above 0. Received: {shown(text)}")
        if len(numbers) == 2:
            points.append(_point(row.text("model"), row.text("kind"), **{
                "flops": float(numbers["train_flops"]), "score": float(numbers[column])}))
    if not points:
        raise UserError(f"{path}: no model has train_flops and {column}.")
    return points


def given(text: str) -> Point:
    """Returns a run as `--own` names it: its name, FLOPs and average on GLUE.

    Raises:
        UserError: something else.

    >>> given("mine:1.5e17:71.2")
    Point(name='mine', kind='your runs', flops=1.5e+17, score=71.2)
    """
    *name, flops, score = text.rsplit(":", 2)
    if not name or not name[0] or not all(map(_NUMBER.fullmatch, (flops, score))) or not (
            float(flops) > 0.0 and 0.0 < float(score) <= 100.0):
        raise UserError("--own must be name:FLOPs:score, such as mine:1.5e17:71.2, the score in "
                        f"per cent. Received: {shown(text)}")
    return _point(name[0], OWN, float(flops), float(score))


def of_glue(directory: Path) -> Point:
    """Returns what a run of GLUE's tasks scored, and what its encoder cost to pre-train.

    Args:
        directory: --model_dir of run_finetuning.py --task=glue.

    Raises:
        UserError: a task of the average is missing, or the encoder isn't a pre-training run of
            this program that is still there.
    """
    found = {name: Results.load(directory / name) for name in AVERAGED}
    missing = [name for name, results in found.items() if results is None]
    if missing:
        raise UserError(f"--glue_dir={directory} has no results of {', '.join(missing)}, which the "
                        "average of the literature has; run run_finetuning.py --task=glue to its "
                        "end.")
    sources = {results.initial for results in found.values()}
    if len(sources) > 1:
        raise UserError(f"--glue_dir={directory} has results of several encoders: "
                        f"{', '.join(sorted(sources))}; fine-tune one on all tasks.")
    return _point(directory.name, OWN, pretraining_flops(sources.pop()),
                  100 * glue_average(list(found.values())))


def pretraining_flops(source: str, seen: Sequence[str] = ()) -> float:
    """Returns the training FLOPs of a run and of those it began with, as the paper counts.

    Args:
        source: of an encoder, as results.json and settings.json name it: "DIRECTORY, step NUMBER".
        seen: directories of the runs that began with it.

    Raises:
        UserError: it is no run of this program that is still there, or its cost isn't counted.
    """
    named = re.fullmatch(r"(.+), step ([0-9]{1,3}(,[0-9]{3})*)", source)
    model_dir = storage.path(named[1]) if named else None
    if model_dir is None or named[1] in seen or not (model_dir / SETTINGS_FILE).exists():
        raise _unknown(source, "is no pre-training run that is still there")
    saved: dict[str, Any] = read_identity(model_dir)
    if "training.num_train_steps" not in saved or not saved.get("data.max_seq_length"):
        raise _unknown(source, "doesn't have the settings of a pre-training run")
    steps = {"training.num_train_steps": int(named[2].replace(",", ""))}
    config = override(PretrainingConfig(), settings_of(saved) | steps)
    flops = Workload.of(config, config.data.max_seq_length).paper_flops
    if saved.get("initial"):
        flops += pretraining_flops(saved["initial"], (*seen, named[1]))
    return flops


def _unknown(source: str, problem: str) -> UserError:
    return UserError(f"{shown(source)} {problem}, so what it cost isn't known; give "
                     "--own=name:FLOPs:score instead of --glue_dir.")


def _point(name: str, kind: str, flops: float, score: float) -> Point:
    return Point(name=one_line(name, _LONGEST_NAME), kind=kind, flops=flops, score=score)
