"""The row that papers print of GLUE: a score for each task and their average, from finished runs.

Needs no TensorFlow: everything is in the runs' results.json.
"""

import io
import zipfile
from collections.abc import Mapping

from electra_tf.checkpoints.run_directory import RESULTS_FILE
from electra_tf.finetuning.results import Results, counted_metric, glue_average, shown_score
from electra_tf.platform.atomic_file import write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.tasks.glue import TASKS, GlueTask

AVERAGE_FILE = "glue_average.json"
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
    without = [one for name, one in found.items() if name != _UNCOUNTED]
    averages = {"avg": glue_average(without),
                "avg with WNLI": glue_average(list(found.values()))
                if _UNCOUNTED in found else None}
    print(f"GLUE on dev, medians over the trials in per cent: {model_dir}\n\n"
          f"{_table(found, averages)}\n\n"
          f"avg      over {len(without)} of {len(TASKS) - 1} tasks, without WNLI; of two scores "
          "the first counts")
    if missing:
        print(f"missing  {', '.join(missing)}: no {RESULTS_FILE} in {model_dir}/{missing[0]}"
              f"{' and so on' if len(missing) > 1 else ''}; the averages are of the other tasks")
    write_json(model_dir / AVERAGE_FILE, {
        "average_without_wnli": averages["avg"], "average_with_wnli": averages["avg with WNLI"],
        "tasks": {name: _counted(one) for name, one in found.items()}, "missing": missing})
    print(f"results  {model_dir / AVERAGE_FILE}")


def pack(model_dir: Path, submission: str) -> None:
    """Packs the tasks' files for the server, if there are some.

    Args:
        model_dir: holds a directory for each task, and gets the archive.
        submission: name of the directory of a task's files; the archive is named after it.
    """
    files = [path for name in TASKS
             for path in sorted((model_dir / name / submission).glob("*.tsv"))]
    if files:
        archive = model_dir / f"{submission}.zip"
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as packed:
            for path in files:
                packed.writestr(path.name, path.read_bytes())
        write_atomically(archive, content.getvalue())
        print(f"for GLUE's server  {archive} ({len(files)} files)")


def _read(model_dir: Path) -> dict[str, Results]:
    """Returns task -> results, in the benchmark's order, of the tasks that have some."""
    if not model_dir.is_dir():
        raise UserError(f"--model_dir={model_dir} is no directory; name the one that a run with "
                        "--task=glue wrote to.")
    found = {name: results for name in TASKS if (results := Results.load(model_dir / name))}
    for name, results in found.items():
        if (results.task, results.metrics, tuple(results.trials[0].scores)) != (
                name, TASKS[name].metrics, TASKS[name].dev):
            raise UserError(f"{model_dir / name / RESULTS_FILE} is not of --task={name}; put the "
                            "right file there.")
    if not found:
        raise UserError(f"--model_dir={model_dir} has no finished task of GLUE: there is neither "
                        f"{'/'.join((next(iter(TASKS)), RESULTS_FILE))} nor another task's; train "
                        "with --task=glue first, or name its --model_dir.")
    return found


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
    scores = [shown_score(metric, split[metric]["median"])
              for split in results.summary().values() for metric in metrics]
    return [*heads, " / ".join(scores), str(len(results.trials))]
