"""Outputs of a fine-tuned model: scores, predictions, mistakes, files for a benchmark's server."""

import json
from collections.abc import Callable, Mapping, Sequence

from electra_tf.finetuning import pictures
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import THRESHOLD, Results, shown_score
from electra_tf.finetuning.setup import FinetuningRun
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.tasks import glue, registry
from electra_tf.tasks.examples import Example, Kind
from electra_tf.tasks.kinds.kind import Record, Scored, Split
from electra_tf.tasks.kinds.registry import KINDS
from electra_tf.tasks.mrqa import QUESTIONS
from electra_tf.tasks.task import Task

SUBMISSION = "submission"
EVALUATION_FILE = "eval_results.json"
ANSWERS_FILE, NO_ANSWER_FILE = "predictions.json", "null_odds.json"
"""Files for SQuAD's and MRQA's evaluation: answers, and for 2.0 the logit of "no answer"."""


def scored(predictor: Predictor, split: Split, threshold: float | None) -> Scored:
    """Returns predictions and scores of a split; a threshold of None is searched."""
    return split.score(predictor.predict(split.rows), threshold)


def threshold_of(model_dir: Path) -> float | None:
    """Returns the threshold that was best on dev in training; None if none was searched."""
    results = Results.load(model_dir)  # None of a model that was converted, not trained here.
    return results and next(iter(results.best.scores.values())).get(THRESHOLD)


def evaluate(run: FinetuningRun, dev: Mapping[str, Sequence[Example]]) -> None:
    """Scores the run's model on splits of labelled examples; prints and saves a table."""
    predictor, threshold = Predictor(run.trial, run.trained_model()), threshold_of(run.model_dir)
    scores = {}
    for name, examples in dev.items():
        scores[name] = scored(predictor, run.encode(examples), threshold).scores
        print(f"{run.spec.name}, {name}: {len(examples):,} examples")
        for metric, value in scores[name].items():
            print(f"  {metric:<32}{shown_score(metric, value):>9}", flush=True)
    write_json(run.model_dir / EVALUATION_FILE, scores)
    print(f"results  {run.model_dir / EVALUATION_FILE}")


def predict(run: FinetuningRun, source: Path, output: Path) -> None:
    """Reads examples from a file and writes the model's predictions to another."""
    write = writer_for(output, run.spec.kind)
    examples = registry.read_file(run.spec, source, labelled=False)
    predictor = Predictor(run.trial, run.trained_model())
    write(scored(predictor, run.encode(examples), threshold_of(run.model_dir)).records)
    print(f"{len(examples):,} predictions  {output}")


def write_outputs(run: FinetuningRun, task: Task, dev: Mapping[str, Split],
                  results: Results) -> None:
    """Writes predictions, the server's files and pictures of the best trial."""
    predictor = Predictor(run.trial, run.trained_model())
    directory, threshold = run.model_dir / "predictions", threshold_of(run.model_dir)
    make_directory(directory)

    def predicted(name: str, split: Split) -> Sequence[Record]:
        records = scored(predictor, split, threshold).records
        writer_for(directory / f"{name}.jsonl", run.spec.kind)(records)
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


def truth_and_found(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """Returns the true and the predicted labels of records with known truth, word by word."""
    return tuple([label for record in records for label in (
        record[name] if isinstance(record[name], list) else [record[name]])]
        for name in ("gold", "prediction"))


def writer_for(path: Path, kind: Kind) -> Callable[[Sequence[Record]], None]:
    """Returns a function that writes predictions to a file: .jsonl or the kind's own format.

    Raises:
        UserError: another suffix.
    """
    forms = {".jsonl": _json_lines, KINDS[kind].suffix: KINDS[kind].written}
    if path.suffix not in forms:
        raise UserError(f"--output={path} must end in {' or '.join(forms)}.")
    form = forms[path.suffix]
    return lambda records: write_atomically(path, form(records).encode())


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
