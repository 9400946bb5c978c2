"""Costs and GLUE scores of models: those of literature.csv, and the user's own runs."""

import csv
import pathlib
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
from electra_tf.reporting.scores import OWN, Point
from electra_tf.tasks import glue

LITERATURE = pathlib.Path(__file__).with_name("literature.csv")
AVERAGED = tuple(name for name in glue.TASKS if name != "wnli")
"""Tasks of the paper's average on GLUE's development sets."""
_LONGEST_NAME = 40
"""Characters of a model's name in the plot."""
_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?(e[0-9]{1,2})?", re.ASCII)


def literature() -> list[Point]:
    """Returns the models of `LITERATURE` that have a cost and an average on GLUE."""
    with LITERATURE.open(encoding="utf-8", newline="") as file:
        return [_point(row["model"], row["kind"], float(row["train_flops"]),
                       float(row["glue_dev"]))
                for row in csv.DictReader(file) if row["train_flops"] and row["glue_dev"]]


def given(text: str) -> Point:
    """Returns a run as `--own` gives it: its name, FLOPs and average on GLUE.

    Raises:
        UserError: the text has another form.

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
    """Returns the average of a run on GLUE's tasks and the cost of its encoder's pre-training.

    Args:
        directory: --model_dir of run_finetuning.py --task=glue.

    Raises:
        UserError: the results of a task are missing, or the cost of the encoder is unknown.
    """
    found = {name: Results.load(directory / name) for name in AVERAGED}
    missing = [name for name, results in found.items() if results is None]
    if missing:
        raise UserError(f"--glue_dir={directory} has no results of {', '.join(missing)}, which "
                        "count in the average; complete run_finetuning.py --task=glue first.")
    sources = {results.initial for results in found.values()}
    if len(sources) > 1:
        raise UserError(f"--glue_dir={directory} has results of several encoders: "
                        f"{', '.join(sorted(sources))}; fine-tune one on all tasks.")
    return _point(directory.name, OWN, pretraining_flops(sources.pop()),
                  100 * glue_average(list(found.values())))


def pretraining_flops(source: str, seen: Sequence[str] = ()) -> float:
    """Returns the training FLOPs of a run and of its initial runs by the paper's count.

    Args:
        source: an encoder as results.json and settings.json name it, "DIRECTORY, step NUMBER".
        seen: directories of the runs that it initialized.

    Raises:
        UserError: the directory is not a pre-training run of this program.
    """
    named = re.fullmatch(r"(.+), step ([0-9]{1,3}(,[0-9]{3})*)", source)
    saved: dict[str, Any] = {}
    if named and named[1] not in seen and (storage.path(named[1]) / SETTINGS_FILE).exists():
        saved = read_identity(storage.path(named[1]))
    if "training.num_train_steps" not in saved or not saved.get("data.max_seq_length"):
        raise UserError(f"{shown(source)} is not an existing pre-training run, so its cost is "
                        "unknown; give --own=name:FLOPs:score instead of --glue_dir.")
    steps = {"training.num_train_steps": int(named[2].replace(",", ""))}
    config = override(PretrainingConfig(), settings_of(saved) | steps)
    flops = Workload.of(config, config.data.max_seq_length).paper_flops
    if saved.get("initial"):
        flops += pretraining_flops(saved["initial"], (*seen, named[1]))
    return flops


def _point(name: str, kind: str, flops: float, score: float) -> Point:
    return Point(name=one_line(name, _LONGEST_NAME), kind=kind, flops=flops, score=score)
