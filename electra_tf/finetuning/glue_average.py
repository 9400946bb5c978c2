"""The row that papers print of GLUE: a score for each task and their average, from finished runs.

Needs no TensorFlow: everything is in the runs' results.json.
"""

import io
import zipfile
from collections.abc import Mapping, Sequence

from electra_tf.checkpoints.run_directory import RESULTS_FILE
from electra_tf.finetuning.results import Results, counted_metric, glue_average, shown_score
from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.tasks.glue import TASKS, GlueTask

AVERAGE_FILE = "glue_average.json"
RUN_FILE = "glue_results.json"
_UNCOUNTED = "wnli"
"""Left out of most papers' averages, ELECTRA's too: few models learn anything of it."""
_WORDS = {"mcc": "MCC", "accuracy": "acc", "f1": "F1", "pearson": "Pearson",
          "spearman": "Spearman"}
"""Metrics as papers head their columns."""


def report(model_dir: Path) -> None:
    """Prints the row, in Markdown, with and without WNLI, and writes it to glue_average.json.

    Scores are medians over the trials on dev, in per cent. As in ELECTRA's table 1 one score of
    each task counts: Matthews correlation of CoLA, Spearman's of STS-B, accuracy elsewhere, on
    MNLI's matched half.

    Args:
        model_dir: of a run with `--task=glue`: it holds a directory for each task.

    Raises:
        UserError: no such directory, no task in it has results, these are damaged or another
            task's, or nothing can be written.
    """
    found = _read(model_dir)
    missing = [name for name in TASKS if name not in found]
    averages = _print_row(model_dir, found)
    if missing:
        print(f"missing  {', '.join(missing)}: no {RESULTS_FILE} in {model_dir}/{missing[0]}"
              f"{' and so on' if len(missing) > 1 else ''}; the averages are of the other tasks")
    write_json(model_dir / AVERAGE_FILE, {
        "average_without_wnli": averages["avg"], "average_with_wnli": averages["avg with WNLI"],
        "tasks": {name: _counted(one) for name, one in found.items()}, "missing": missing})
    print(f"results  {model_dir / AVERAGE_FILE}")


def report_run(model_dir: Path, results: Sequence[Results], submission: str) -> None:
    """Prints the row of tasks that were trained together and packs their files for the server.

    Args:
        model_dir: holds a directory for each task, and gets glue_results.json and the archive.
        results: of each task.
        submission: name of the directory of a task's files; the archive is named after it.
    """
    print()
    _print_row(model_dir, {result.task: result for result in results})
    write_json(model_dir / RUN_FILE, {
        "average": glue_average(results),
        "tasks": {result.task: result.summary() for result in results}})
    files = [path for result in results
             for path in sorted((model_dir / result.task / submission).glob("*.tsv"))]
    if files:
        archive = model_dir / f"{submission}.zip"
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as packed:
            for path in files:
                packed.writestr(path.name, path.read_bytes())
        write_atomically(archive, content.getvalue())
        print(f"for GLUE's server  {archive} ({len(files)} files)")
    print(f"results  {model_dir / RUN_FILE}")


def _print_row(model_dir: Path, found: Mapping[str, Results]) -> dict[str, float | None]:
    """Prints scores and averages in Markdown; returns the averages."""
    without = [one for name, one in found.items() if name != _UNCOUNTED]
    averages = {"avg": glue_average(without),
                "avg with WNLI": glue_average(list(found.values()))
                if _UNCOUNTED in found else None}
    print(f"GLUE on dev, medians over the trials in per cent: {model_dir}\n")
    print(_table(found, averages))
    print(f"\navg      over {len(without)} of {len(TASKS) - 1} tasks, without WNLI; of two scores "
          "the first counts")
    return averages


def _read(model_dir: Path) -> dict[str, Results]:
    """Returns task -> results, in the benchmark's order, of the tasks that have some."""
    if not model_dir.is_dir():
        raise UserError(f"--model_dir={model_dir} is no directory; name the one that a run with "
                        "--task=glue wrote to.")
    found = {}
    for name, task in TASKS.items():
        results = Results.load(model_dir / name)
        if results is not None:
            _require_scores(model_dir / name / RESULTS_FILE, task, results)
            found[name] = results
    if not found:
        raise UserError(f"--model_dir={model_dir} has no finished task of GLUE: there is neither "
                        f"{'/'.join((next(iter(TASKS)), RESULTS_FILE))} nor another task's; train "
                        "with --task=glue first, or name its --model_dir.")
    return found


def _require_scores(path: Path, task: GlueTask, results: Results) -> None:
    if results.task != task.name:
        raise UserError(f"{path} is of --task={results.task}, not {task.name}; put the right file "
                        "there.")
    summary = results.summary()
    lacking = [f"{metric} on {split}" for split in task.dev for metric in task.metrics
               if metric not in summary.get(split, {})]
    if lacking:
        raise UserError(f"{path} is damaged: it has no {lacking[0]}; remove it, and the trials run "
                        "again.")


def _counted(results: Results) -> dict[str, str | float | int]:
    """Returns the score that counts."""
    metrics = next(iter(results.summary().values()))
    name = counted_metric(metrics)
    return {"metric": name, "median": metrics[name]["median"], "trials": len(results.trials)}


def _table(found: Mapping[str, Results], averages: Mapping[str, float | None]) -> str:
    columns = [["", "metric", "dev", "trials"],
               *(_column(task, found.get(name)) for name, task in TASKS.items()),
               *([head, "", shown_score("average", value), ""] for head, value in averages.items())]
    widths = [max(map(len, column)) for column in columns]
    head, *rest = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(
        row, widths, strict=True)) + " |" for row in zip(*columns, strict=True)]
    return "\n".join([head, "|" + "|".join("-" * (width + 2) for width in widths) + "|", *rest])


def _column(task: GlueTask, results: Results | None) -> list[str]:
    """Returns name, metrics, scores and number of trials; MNLI has scores of two halves."""
    first = counted_metric(task.metrics)
    metrics = sorted(task.metrics, key=lambda metric: metric != first)
    halves = "" if len(task.dev) == 1 else ", m / mm"
    heads = [task.directory, " / ".join(_WORDS[metric] for metric in metrics) + halves]
    if results is None:
        return [*heads, "-", "-"]
    summary = results.summary()
    scores = [shown_score(metric, summary[split][metric]["median"])
              for split in task.dev for metric in metrics]
    return [*heads, " / ".join(scores), str(len(results.trials))]
