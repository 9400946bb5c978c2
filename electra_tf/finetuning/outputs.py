"""Writes what training leaves: predictions, mistakes, learning curves, files for servers."""

import collections
import io
import itertools
import json
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from electra_tf.core.atomic_file import make_directory, write_atomically
from electra_tf.core.errors import one_line
from electra_tf.core.storage import Path
from electra_tf.finetuning.predict import TaskPredictor
from electra_tf.finetuning.results import Results
from electra_tf.finetuning.run import FinetuningRun
from electra_tf.reporting import plots
from electra_tf.reporting.tables import text_table
from electra_tf.tasks import glue
from electra_tf.tasks.kinds.base import Record, Split, json_lines
from electra_tf.tasks.question_files import BENCHMARKS as QUESTIONS
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Task, TaskSpec

SHOWN_LABELS, SHOWN_MISTAKES = 8, 10
OTHERS = "others"
SUBMISSION = "submission"


def write_outputs(run: FinetuningRun, task: Task, dev: Mapping[str, Split],
                  results: Results) -> str:
    """Writes predictions, a server's files and learning curves; returns `mistakes` on dev."""
    predictor, files, records = TaskPredictor(run), {}, {}
    tests = ((name, run.encode(examples)) for name, examples in task.test.items())
    for name, split in itertools.chain(dev.items(), tests):
        for note in split.notes if name in task.test else ():
            print(f"note     {name}: {note}", flush=True)
        records[name] = predictor.scored(split).records
        files[f"predictions/{name}.jsonl"] = json_lines(records[name])
    # QA benchmarks have no public test file; SQuAD's server also scores predictions for dev.
    submitted = task.test or (dev if run.spec.name in QUESTIONS else {})
    files |= {f"{SUBMISSION}/{file}": content for file, content in submission_files(
        run.spec, {name: records[name] for name in submitted}).items()}
    for file, content in files.items():
        make_directory((run.model_dir / file).parent)
        write_atomically(run.model_dir / file, content.encode())
    draw_learning_curves(results, run.model_dir / "learning_curve.png")
    return "".join(mistakes(run.spec, records[name], name) for name in [*dev][:1])


def submission_files(spec: TaskSpec,
                     predictions: Mapping[str, Sequence[Record]]) -> dict[str, str]:
    """Returns name -> content of the files that a benchmark's server takes; empty for others."""
    if spec.name in glue.TASKS:
        return dict(glue.submission(glue.TASKS[spec.name], split, records)
                    for split, records in predictions.items())
    files = {}
    for records in predictions.values() if spec.name in QUESTIONS else ():
        files["predictions.json"] = KINDS[spec.kind].formatters(spec)[".json"](records)
        if all("no_answer_score" in record for record in records):
            files["null_odds.json"] = json.dumps(  # Logits of "no answer".
                {record["key"]: record["no_answer_score"] for record in records}) + "\n"
    return files


def pack_submissions(model_dir: Path) -> None:
    """Writes a zip archive of the submission files of GLUE's tasks, if there are any."""
    files = [path for name in glue.TASKS
             for path in sorted((model_dir / name / SUBMISSION).glob("*.tsv"))]
    if files:
        archive, content = model_dir / f"{SUBMISSION}.zip", io.BytesIO()
        with zipfile.ZipFile(content, "w") as packed:
            for path in files:
                packed.writestr(path.name, path.read_bytes())
        write_atomically(archive, content.getvalue())
        print(f"for GLUE's server  {archive} ({len(files)} files)")


def mistakes(spec: TaskSpec, records: Sequence[Record], split: str) -> str:
    """Returns the confusion matrix and the most confident mistakes; "" for tasks without labels."""
    records = KINDS[spec.kind].decisions(records)
    if not records:
        return ""
    # The confusion matrix.
    gold_counts = collections.Counter(record["gold"] for record in records)
    labels = [*dict.fromkeys((*spec.label_words, *sorted(gold_counts), *(
        record["prediction"] for record in records)))]
    if len(labels) > SHOWN_LABELS:  # Rarer labels share a row and a column.
        frequent = dict(gold_counts.most_common(SHOWN_LABELS))
        labels = [label for label in labels if label in frequent] + [OTHERS]
    pairs = collections.Counter(tuple(
        record[name] if record[name] in labels else OTHERS for name in ("gold", "prediction"))
        for record in records)
    rows = [(gold, *(f"{pairs[gold, prediction]:,}" for prediction in labels)) for gold in labels]
    text = text_table("confusions: a row for each true label, a column for each predicted one",
                      rows, ("", *labels))

    # The mistakes with the highest probabilities.
    wrong = sorted((record for record in records if record["gold"] != record["prediction"]),
                   key=lambda record: -record["probability"])
    lines = [f"  {100 * record['probability']:5.1f} %  {record['prediction']}, true: "
             f"{record['gold']}; {record['key']}: {one_line(' / '.join(record['texts']), 90)}"
             for record in wrong[:SHOWN_MISTAKES]]
    title = [f"the most confident mistakes of {len(wrong):,} on {split}"] if wrong else []
    return "\n".join(["", text, *title, *lines])


def draw_learning_curves(results: Results, path: Path) -> None:
    """Draws training loss and main score after every epoch, with a line for each trial."""
    metric, split = results.metrics[0], next(iter(results.trials[0].scores))
    figure, (loss_axes, score_axes) = plots.figure(1, 2, (8.4, 3.4))
    for trial in results.trials:
        style = {"alpha": 1.0, "linewidth": 2.0} if trial is results.best else {
            "alpha": 0.45, "linewidth": 1.2}
        scores = [epoch.scores.get(split, {}).get(metric) for epoch in trial.epochs]
        loss_axes.plot(*zip(*trial.losses, strict=True), ".-", color=plots.COLORS[0], **style)
        score_axes.plot([epoch.step for epoch in trial.epochs],
                        [np.nan if score is None else score for score in scores], "o-",
                        color=plots.COLORS[1], **style)
    for axes, label in ((loss_axes, "training loss"),
                        (score_axes, f"{metric} on {split}, after every epoch")):
        plots.style_axes(axes, x="step", y=label)
        axes.locator_params(axis="x", nbins=5, integer=True)
        axes.set_xlim(left=0)
    several = ", the best trial in bold" if len(results.trials) > 1 else ""
    figure.suptitle(results.task + several, fontsize=10, color=plots.INK)
    plots.save(figure, path)
