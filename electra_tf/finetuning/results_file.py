"""Reads `results.json` back: typed, and only if it agrees with itself."""

import dataclasses
import math
from typing import Any

from electra_tf.checkpoints.run_directory import (
    CHECKPOINT_KEY,
    MOST_RESULT_BYTES,
    RESULTS_FILE,
)
from electra_tf.finetuning.results import Results, Trial
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import plain


@dataclasses.dataclass(frozen=True, kw_only=True)
class _File:
    """What `Results.save` writes."""

    __pydantic_config__ = strict_json.STRICT

    task: str
    metrics: tuple[str, ...]
    initial: str
    trials: tuple[Trial, ...]
    best_seed: int
    checkpoint: int
    summary: dict[str, dict[str, dict[str, float | None]]]


def load(model_dir: Path) -> Results | None:
    """Returns what `Results.save` wrote; None if there is nothing yet.

    Raises:
        UserError: the file is damaged, or its values contradict each other.
    """
    path = model_dir / RESULTS_FILE
    if not path.exists():
        return None
    fix = "remove it, and the trials run again."
    found = strict_json.read(path, _File, most=MOST_RESULT_BYTES, fix=fix)
    results = Results(task=found.task, metrics=found.metrics, initial=found.initial,
                      trials=found.trials)
    problem = _contradiction(found, results)
    if problem:
        raise UserError(f"{path} is damaged: {problem}; {fix}")
    return results


def _contradiction(found: _File, results: Results) -> str:
    """Returns what of a file can't be so, in words; empty if everything fits."""
    shapes = {tuple((split, *scores) for split, scores in trial.scores.items())
              for trial in results.trials}
    if len(shapes) != 1:
        return "its trials are none, or have different splits or metrics"
    main = next(iter(results.trials[0].scores.values()))
    missing = [metric for metric in results.metrics if metric not in main]
    if missing or not results.metrics:
        return f"its trials have no score {shown(missing)}"
    if found.best_seed != results.best.seed:
        return f"best_seed is {found.best_seed}, but the best trial has {results.best.seed}"
    if found.checkpoint != results.checkpoint:
        return (f"{CHECKPOINT_KEY} is {found.checkpoint}, but the best trial's is "
                f"{results.checkpoint}")
    if not _equal(found.summary, plain(results.summary())):
        return "its summary isn't that of its trials"
    return ""


def _equal(first: Any, second: Any) -> bool:
    """Compares scores; another machine's mean may differ in the last bit."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            _equal(value, second[name]) for name, value in first.items())
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12)
