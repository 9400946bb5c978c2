"""Outputs of a fine-tuned model: scores, predictions, mistakes, files for a benchmark's server."""

import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from electra_tf.finetuning import pictures
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import THRESHOLD, Results, shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.platform import storage
from electra_tf.platform.atomic_file import (
    TEMPORARY_PREFIX,
    make_directory,
    write_atomically,
    write_error,
)
from electra_tf.platform.errors import UserError, one_line
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.reporting.progress import duration
from electra_tf.tasks import glue, registry
from electra_tf.tasks.examples import Example, Kind
from electra_tf.tasks.kinds.kind import Record, Scored, Split, TaskKind
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.mrqa import QUESTIONS
from electra_tf.tasks.task import Task, TaskSpec

PIPE = "-"
"""Stands for standard input or output."""
PRINTED_LABELS, SHOWN_MISTAKES, PROGRESS_SECONDS = 8, 10, 10.0
SUBMISSION = "submission"
EVALUATION_FILE = "eval_results.json"
ANSWERS_FILE, NO_ANSWER_FILE = "predictions.json", "null_odds.json"
"""Files for SQuAD's and MRQA's evaluation: answers, and for 2.0 the logit of "no answer"."""


class TaskPredictor:
    """A trained model with its task: examples in, predictions out."""

    def __init__(self, run: FinetuningRun):
        """Reads the weights of the run's best trial."""
        self._run = run
        self._predictor = Predictor(run.trial, run.trained_model())
        self._threshold = threshold_of(run.model_dir)

    def scored(self, split: Split, *, show_progress: bool = False) -> Scored:
        """Returns predictions and scores of encoded examples."""
        progress = [Progress().show] if show_progress else []
        return split.score(self._predictor.predict(split.rows, *progress), self._threshold)

    def predict(self, given: Sequence[Any]) -> list[Record]:
        """Returns a prediction for each input, with a number from 0 as its key.

        Args:
            given: texts, or pairs of texts; for tagging texts that are split at spaces, or lists of
                words; for extractive QA pairs of a question and its context.

        Raises:
            UserError: an input of another form.
        """
        run = self._run
        examples = [run.kind.example(run.spec, str(number), one)
                    for number, one in enumerate(given)]
        return list(self.scored(run.encode(examples)).records) if examples else []


class Progress:
    """Lines on a long prediction, to stderr: the share that is done and the time left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        """Takes the clock, in seconds."""
        self._clock = clock
        self._began = self._shown = clock()

    def show(self, done: float) -> None:
        """Prints a line if the last is ten seconds old; `done` is a fraction in (0, 1]."""
        now = self._clock()
        if now - self._shown >= PROGRESS_SECONDS and done < 1:
            left = (now - self._began) * (1 - done) / done
            print(f"  {100 * done:3.0f} %  ETA {duration(left)}", file=sys.stderr, flush=True)
            self._shown = now


def threshold_of(model_dir: Path) -> float | None:
    """Returns the threshold that was best on dev in training; None if none was searched."""
    results = Results.load(model_dir)  # None of a model that was converted, not trained here.
    return results and next(iter(results.best.scores.values())).get(THRESHOLD)


def evaluate(run: FinetuningRun, dev: Mapping[str, Sequence[Example]]) -> None:
    """Scores the run's model on splits of labelled examples; prints and saves a table."""
    predictor = TaskPredictor(run)
    scores = {}
    for name, examples in dev.items():
        found = predictor.scored(run.encode(examples), show_progress=True)
        scores[name] = found.scores
        constant, baseline = run.kind.baseline(run.spec, examples, examples)
        print(f"{run.spec.name}, {name}: {len(examples):,} examples\n{'':<34}{'score':>9}"
              f"{'baseline':>10}")
        for metric, value in found.scores.items():
            print(f"  {metric:<32}{shown_score(metric, value):>9}"
                  f"{shown_score(metric, baseline.get(metric)):>10}")
        print(f"  baseline: {constant}{mistakes(run.spec, found.records, name)}", flush=True)
    write_json(run.model_dir / EVALUATION_FILE, scores)
    print(f"results  {run.model_dir / EVALUATION_FILE}")


def predict(run: FinetuningRun, source: str, output: str, *, overwrite: bool = False) -> None:
    """Reads examples and writes the model's predictions.

    Args:
        run: was trained.
        source: a file of examples; "-" is standard input, in the kind's plainest format.
        output: a file; "-" is standard output, in the kind's own format.
        overwrite: replace an existing output.

    Raises:
        UserError: the output is the input, exists, or can't be written, found before anything is
            computed; or the input can't be read.
    """
    target = None if output == PIPE else storage.path(output)
    form = run.kind.written if target is None else _form(target, run.kind)
    with _readable(source, run.kind.piped) as path:
        if target is not None:
            require_writable(target, path, overwrite=overwrite)
        examples = registry.read_file(run.spec, path, labelled=False)
    content = form(TaskPredictor(run).scored(run.encode(examples), show_progress=True).records)
    if target is None:
        sys.stdout.write(content)
    else:
        write_atomically(target, content.encode())
        print(f"{len(examples):,} predictions  {output}")


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
    """Yields the path of a file with the input; standard input becomes a temporary one."""
    if source != PIPE:
        yield storage.path(source)
        return
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / f"stdin{suffix}"
        path.write_bytes(sys.stdin.buffer.read())
        yield path


def write_outputs(run: FinetuningRun, task: Task, dev: Mapping[str, Split],
                  results: Results) -> str:
    """Writes predictions, the server's files and pictures of the best trial.

    Returns:
        What is to be seen of its mistakes on the first split.
    """
    predictor, directory = TaskPredictor(run), run.model_dir / "predictions"
    make_directory(directory)

    def predicted(name: str, split: Split) -> Sequence[Record]:
        records = predictor.scored(split).records
        write_atomically(directory / f"{name}.jsonl", _json_lines(records).encode())
        return records

    on_dev = {name: predicted(name, split) for name, split in dev.items()}
    tests = {name: predicted(name, run.encode(examples)) for name, examples in task.test.items()}
    # SQuAD's server scores the dev file too, as long as it has no answers for test.
    write_submission(run.model_dir / SUBMISSION, run.spec.name,
                     tests or (on_dev if run.spec.name in QUESTIONS else {}))
    pictures.draw_learning_curves(results, run.model_dir / "learning_curve.png")
    name, records = next(iter(on_dev.items()))
    if run.spec.labels:
        pictures.draw_confusion(*truth_and_found(records), run.spec.label_words,
                                f"{run.spec.name}, {name}", run.model_dir / "confusion_matrix.png")
    return mistakes(run.spec, records, name)


def mistakes(spec: TaskSpec, records: Sequence[Record], split: str) -> str:
    """Returns the confusion matrix of records with known labels and the most confident mistakes.

    Empty for tasks without labels. Tags have no probabilities, so theirs is the matrix alone.
    """
    if not spec.labels:
        return ""
    labels, table = pictures.confusion_table(
        *truth_and_found(records), spec.label_words, most=PRINTED_LABELS)
    width = max(map(len, (*labels, "true, predicted:")))
    columns = [max(len(label), len(f"{table.max():,}")) for label in labels]
    lines = ["  ".join([f"  {'true, predicted:':<{width}}", *(
        f"{label:>{size}}" for label, size in zip(labels, columns, strict=True))])]
    lines += ["  ".join([f"  {label:<{width}}", *(
        f"{number:>{size},}" for number, size in zip(row, columns, strict=True))])
        for label, row in zip(labels, table.tolist(), strict=True)]
    wrong = sorted((one for one in records if "probability" in one
                    and one["gold"] != one["prediction"]), key=lambda one: -one["probability"])
    if wrong:
        lines.append(f"the most confident mistakes of {len(wrong):,} on {split}")
        lines += [f"  {100 * one['probability']:5.1f} %  {one['prediction']}, true: {one['gold']}; "
                  f"{one['key']}: {one_line(' / '.join(one['texts']), 90)}"
                  for one in wrong[:SHOWN_MISTAKES]]
    return "\n" + "\n".join(lines)


def truth_and_found(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """Returns the true and the predicted labels of records with known truth, word by word."""
    return tuple([label for record in records for label in (
        record[name] if isinstance(record[name], list) else [record[name]])]
        for name in ("gold", "prediction"))


def _form(path: Path, kind: TaskKind) -> Callable[[Sequence[Record]], str]:
    """Returns the form of a file of predictions, .jsonl or the kind's own, by its suffix."""
    forms = {".jsonl": _json_lines, kind.suffix: kind.written}
    if path.suffix not in forms:
        raise UserError(f"--output={path} must end in {' or '.join(forms)}, or be - for standard "
                        "output.")
    return forms[path.suffix]


def write_submission(directory: Path, name: str, predictions: Mapping[str, Sequence[Record]],
                     ) -> list[Path]:
    """Writes the files that a benchmark's server takes, and returns them; none without a server.

    Args:
        directory: created if there is something to write.
        name: the task.
        predictions: split -> records.
    """
    files = {}
    for split, records in predictions.items():
        if name in glue.TASKS:
            file, content = glue.submission(
                glue.TASKS[name], split, [record["key"] for record in records],
                [record["prediction"] for record in records])
            files[file] = content
        elif name in QUESTIONS:
            files[ANSWERS_FILE] = KINDS[Kind.QUESTION_ANSWERING].written(records)
            if all("no_answer_score" in record for record in records):
                files[NO_ANSWER_FILE] = json.dumps(
                    {record["key"]: record["no_answer_score"] for record in records}) + "\n"
    if files:
        make_directory(directory)
    for file, content in files.items():
        write_atomically(directory / file, content.encode())
    return [directory / file for file in files]


def _json_lines(records: Sequence[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
