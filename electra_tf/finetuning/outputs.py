"""Writes outputs of a fine-tuned model: scores, predictions, mistakes, files for servers."""

import collections
import contextlib
import functools
import io
import itertools
import json
import os
import pathlib
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from electra_tf.config.finetuning import LongTexts
from electra_tf.core import storage
from electra_tf.core.atomic_file import (
    TEMPORARY_PREFIX,
    make_directory,
    replacing,
    write_atomically,
    write_error,
    write_json,
)
from electra_tf.core.errors import UserError, one_line
from electra_tf.core.storage import Path
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import Results, score_table, threshold_of
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.reporting import plots
from electra_tf.reporting.progress import duration
from electra_tf.reporting.tables import TextTable, table_text
from electra_tf.tasks import glue
from electra_tf.tasks.files import Files
from electra_tf.tasks.kinds.base import Record, Scored, Split, json_lines
from electra_tf.tasks.question_files import BENCHMARKS as QUESTIONS
from electra_tf.tasks.registry import KINDS
from electra_tf.tasks.task import Example, Kind, Task, TaskSpec

PIPE = "-"
"""Value of `--input` and `--output` for standard input and output."""
PART = 20_000
"""Examples whose predictions are computed and written together."""
SHOWN_LABELS, SHOWN_MISTAKES, PROGRESS_SECONDS = 8, 10, 10.0
OTHERS = "others"
SUBMISSION = "submission"


class TaskPredictor:
    """The model of a run's best trial, with the threshold that it predicts with."""

    def __init__(self, run: FinetuningRun):
        self._run = run
        self._predictor = Predictor(run, run.trained_model())
        self._threshold = threshold_of(run.model_dir)

    def scored(self, split: Split, show: Callable[[float], None] | None = None) -> Scored:
        """Returns predictions and scores of encoded examples; `show` is `progress` by default."""
        results = self._predictor.predict(split.rows, show or progress())
        return split.score(results, self._threshold)

    def predict(self, values: Sequence[Any]) -> list[Record]:
        """Returns a prediction for each input; `UserError` if `TaskKind.example` refuses one."""
        run = self._run
        examples = [run.kind.example(run.spec, str(number), value)
                    for number, value in enumerate(values)]
        if not examples:
            return []
        split = run.encode(examples)
        if run.config.task.long_texts is not LongTexts.WINDOWS:  # Windows read all of a text.
            for note in split.notes:
                warnings.warn(note, stacklevel=3)  # The caller of the interface.
        return list(self.scored(split).records)


def progress() -> Callable[[float], None]:
    """Returns a function of the fraction done, (0, 1], that prints it to stderr every 10 s."""
    began = shown = time.monotonic()

    def show(done: float) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= PROGRESS_SECONDS and done < 1:
            remaining = (now - began) * (1 - done) / done
            print(f"  {100 * done:3.0f} %  ETA {duration(remaining)}", file=sys.stderr, flush=True)
            shown = now

    return show


def evaluate(run: FinetuningRun, task: Task) -> None:
    """Scores the run's model on the splits for dev; prints notes and saves the scores."""
    for note in task.notes:
        print(f"note     {note}", flush=True)
    predictor, path, scores = TaskPredictor(run), run.model_dir / "eval_results.json", {}
    for name, examples in task.dev.items():
        split = run.encode(examples)
        records, scores[name] = predictor.scored(split)
        constant, baseline = run.kind.baseline(run.spec, examples, examples)
        print(score_table(f"{run.spec.name}, {name}: {len(examples):,} examples", scores[name],
                          {"score": scores[name], "baseline": baseline},
                          [f"baseline: {constant}", *split.notes])
              + mistakes(run.spec, records, name), flush=True)
    write_json(path, scores)
    print(f"results  {path}")


def predict(run: FinetuningRun, source: str, output: str, user_files: Files, *,
            overwrite: bool) -> None:
    """Reads examples from a file or standard input, and writes the model's predictions.

    `output` is a file, .jsonl or in a format of the kind, or "-" for standard output. `user_files`
    may select other columns than in training. Notes go to standard error. `UserError`, before the
    computation, if `output` is the input, exists without `overwrite`, or isn't writable.
    """
    forms = {**run.kind.forms(run.spec), ".jsonl": json_lines}
    target = None if output == PIPE else storage.path(output)
    suffix = next(iter(forms)) if target is None else target.suffix
    if suffix not in forms:
        raise UserError(f"--output={target} must end in {' or '.join(forms)}, or be - for standard "
                        "output.")
    with _readable(source, run.kind.piped) as path:
        if target is not None:
            require_writable(target, path, overwrite=overwrite)
        # The first reading refuses a damaged file before the computation, the second holds a part.
        read = functools.partial(
            run.kind.read_file, path, run.kind.select(run.spec, user_files), labelled=False)
        notes: list[str] = []
        known = collections.Counter(getattr(example, "label", getattr(example, "tags", None))
                                    is None for example in read(notes=notes))
        for note in notes:
            print(f"note     {note}", file=sys.stderr)
        contents = _predicted(TaskPredictor(run), run, read(), known, forms[suffix], suffix)
        if target is None:
            for content in contents:
                sys.stdout.write(content)
            return
        with replacing(target) as temporary, temporary.open("wb") as file:
            for content in contents:
                file.write(content if isinstance(content, bytes) else content.encode())
    print(f"{known.total():,} predictions  {output}")


def _predicted(predictor: TaskPredictor, run: FinetuningRun, examples: Iterable[Example],
               known: Mapping[bool, int], form: Callable[[Sequence[Record]], str | bytes],
               suffix: str) -> Iterator[str | bytes]:
    """Yields parts of a file of predictions, so that memory holds those of one part.

    `known` counts the examples with and without labels. Answers to questions are one part, as their
    format is one object, and so are arrays; so are examples of which some have labels, as the
    columns of a table depend on them. The last line on standard error says how many texts were cut.
    """
    total, show, header, begin = sum(known.values()), progress(), "", 0
    remaining, lengths = iter(examples), []
    # A text in windows takes the memory of several.
    size = PART // 20 if run.config.task.long_texts is LongTexts.WINDOWS else PART
    if run.spec.kind is Kind.QUESTION_ANSWERING or suffix == ".npy" or len(known) > 1:
        size = total
    while part := list(itertools.islice(remaining, size)):
        split = run.encode(part)
        lengths.append(split.lengths)
        content = form(predictor.scored(split, lambda done, begin=begin, part=part: show(
            (begin + done * len(part)) / total)).records)
        yield content.removeprefix(header) if header else content
        header = content.partition("\n")[0] + "\n" if suffix == ".tsv" else ""
        begin += len(part)
    for note in split.cut_notes(np.concatenate(lengths)):
        print(f"note     {note}", file=sys.stderr, flush=True)


def require_writable(target: Path, source: Path, *, overwrite: bool) -> None:
    """Raises `UserError` if predictions for `source` can't be written to `target`."""
    if target.exists():
        if target.resolve() == source.resolve() or (
                isinstance(target, pathlib.Path) and target.samefile(source)):
            raise UserError(f"--output={target} is --input; name another file.")
        if target.is_dir() or not overwrite:
            raise UserError(f"--output={target} exists; name another file, or give --overwrite to "
                            "replace it.")
    probe = target.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{target.name}")
    try:
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise write_error(target, error) from error


@contextlib.contextmanager
def _readable(source: str, suffix: str) -> Iterator[Path]:
    """Yields the path of the input; standard input becomes a temporary file."""
    if source != PIPE:
        yield storage.path(source)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / f"stdin{suffix}"
        if sys.stdin is None:  # After `<&-`.
            raise UserError("--input=- reads standard input, which is closed; name a file.")
        path.write_bytes(sys.stdin.buffer.read())
        yield path


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
        files["predictions.json"] = KINDS[spec.kind].forms(spec)[".json"](records)
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
    gold_counts = collections.Counter(record["gold"] for record in records)
    labels = [*dict.fromkeys((*spec.label_words, *sorted(gold_counts), *(
        record["prediction"] for record in records)))]
    if len(labels) > SHOWN_LABELS:  # Rarer labels share a row and a column.
        frequent = dict(gold_counts.most_common(SHOWN_LABELS))
        labels = [label for label in labels if label in frequent] + [OTHERS]
    pairs = collections.Counter(tuple(
        record[name] if record[name] in labels else OTHERS for name in ("gold", "prediction"))
        for record in records)
    text = table_text(TextTable(
        title="confusions: a row for each true label, a column for each predicted one",
        heading=("", *labels), rows=tuple(
            (gold, *(f"{pairs[gold, prediction]:,}" for prediction in labels))
            for gold in labels)))
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
