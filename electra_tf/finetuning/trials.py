"""A fine-tuning run: its trials, the best one's predictions, and later uses of its model."""

import dataclasses
import io
import zipfile
from collections.abc import Mapping, Sequence

import tensorflow as tf

from electra_tf.checkpoints import directory as checkpoints
from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.manager import CheckpointManager
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import assign_weights, checkpoint_in_use
from electra_tf.data.buckets import Row
from electra_tf.finetuning import figures, results_file
from electra_tf.finetuning.predictor import Predictor
from electra_tf.finetuning.results import (
    THRESHOLD,
    Results,
    glue_average,
    glue_table,
    shown_score,
)
from electra_tf.finetuning.setup import SCRATCH, FinetuningRun
from electra_tf.finetuning.trial import run_trial, scored
from electra_tf.platform.atomic_file import make_directory, write_atomically
from electra_tf.platform.command_line import same_command
from electra_tf.platform.signals import Interrupted
from electra_tf.platform.storage import Path
from electra_tf.reporting.json_file import write_json
from electra_tf.tasks import predictions, registry
from electra_tf.tasks.examples import Example
from electra_tf.tasks.kinds.kind import Scored, Split
from electra_tf.tasks.task import Task
from electra_tf.training import failures
from electra_tf.training.devices import device_name

SUBMISSION = "submission"
EVALUATION_FILE = "eval_results.json"
GLUE_RESULTS_FILE = "glue_results.json"


@failures.explained()
def train(run: FinetuningRun, task: Task, initial: Pretrained | None) -> Results:
    """Runs the trials that are still to do, and leaves the best one's model and predictions.

    Args:
        run: what to do and where.
        task: its examples.
        initial: the encoder to begin with; None for initial weights.

    Returns:
        The scores of all trials.

    Raises:
        UserError: the directory belongs to another run or can't be written; weights are missing;
            the loss isn't finite.
        Interrupted: a signal came, after the step that was running; finished trials are kept.
    """
    source = SCRATCH if initial is None else initial.source
    if initial is not None:  # Weights that don't fit are found before anything is written.
        assign_weights(run.build_model(0).encoder.variables, initial.weights, source)
    run_directory.claim(run.model_dir, run.identity(task, source))
    with run_directory.only_process(run.model_dir):
        run.text.save(run.model_dir / run_directory.VOCABULARY_FILE)
        results = results_file.load(run.model_dir) or Results(
            task=task.spec.name, metrics=task.spec.metrics, initial=source)
        if results.trials:  # Found now, not after hours of further trials.
            checkpoint_in_use(run.model_dir)
        rows = run.encode(_swapped(task.train) if run.config.task.swap_pairs else task.train).rows
        dev = {name: run.encode(examples) for name, examples in task.dev.items()}
        _print_header(run, task, initial, len(rows), len(results.trials))
        for warning in run.warnings(task.train, rows):
            print(f"warning  {warning}", flush=True)
        try:
            for number in range(len(results.trials), run.config.training.num_trials):
                results = _add_trial(run, results, number, rows, dev, initial)
            _write_outputs(run, task, dev, results)
        except Interrupted as interrupted:
            raise Interrupted(interrupted.number, _way_on(run, results)) from None
    print(f"\n{results.table()}\nresults  {run.model_dir / run_directory.RESULTS_FILE}\n"
          f"model    {run.model_dir / run_directory.CHECKPOINTS}", flush=True)
    return results


def evaluate(run: FinetuningRun, dev: Mapping[str, Sequence[Example]]) -> None:
    """Scores the run's model on splits of labelled examples; prints and saves a table."""
    predictor = Predictor(run.trial, run.trained_model())
    scores = {}
    threshold = threshold_of(run.model_dir)
    for name, examples in dev.items():
        scores[name] = scored(predictor, run.encode(examples), threshold).scores
        print(f"{run.spec.name}, {name}: {len(examples):,} examples")
        for metric, value in scores[name].items():
            print(f"  {metric:<32}{shown_score(metric, value):>9}", flush=True)
    write_json(run.model_dir / EVALUATION_FILE, scores)
    print(f"results  {run.model_dir / EVALUATION_FILE}")


def predict(run: FinetuningRun, source: Path, output: Path) -> None:
    """Reads examples from a file and writes what the run's model says of them to another."""
    write = predictions.writer_for(output, run.spec.kind)
    examples = registry.read_file(run.spec, source, labelled=False)
    predictor = Predictor(run.trial, run.trained_model())
    write(scored(predictor, run.encode(examples), threshold_of(run.model_dir)).records)
    print(f"{len(examples):,} predictions  {output}")


def report_glue(model_dir: Path, results: Sequence[Results]) -> None:
    """Prints one table over several tasks of GLUE; gathers their test files for the server."""
    print(f"\n{glue_table(results)}")
    write_json(model_dir / GLUE_RESULTS_FILE, {
        "average": glue_average(results),
        "tasks": {result.task: result.summary() for result in results}})
    files = [path for result in results
             for path in sorted((model_dir / result.task / SUBMISSION).glob("*.tsv"))]
    if files:
        archive = model_dir / f"{SUBMISSION}.zip"
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as packed:
            for path in files:
                packed.writestr(path.name, path.read_bytes())
        write_atomically(archive, content.getvalue())
        print(f"for GLUE's server  {archive} ({len(files)} files)")
    print(f"results  {model_dir / GLUE_RESULTS_FILE}")


def _way_on(run: FinetuningRun, results: Results) -> str:
    """Returns the line that says where a run that is stopped now begins again."""
    finished, wanted = len(results.trials), run.config.training.num_trials
    if finished == wanted:
        rest = "only predictions and pictures are missing"
    else:
        rest = f"trial {finished + 1} begins again from its first step"
    return (f"stopped in --task={run.spec.name}: {finished} of {wanted} trials finished and kept; "
            f"{rest}. To go on from there: {same_command()}")


def _add_trial(run: FinetuningRun, results: Results, number: int, rows: Sequence[Row],
               dev: Mapping[str, Split], initial: Pretrained | None) -> Results:
    """Runs a trial; saves its model if it is the best so far, then its scores."""
    directory = run.model_dir / run_directory.CHECKPOINTS
    seed = run.config.training.seed + number
    if run.config.training.num_trials > 1:
        print(f"trial {number + 1} of {run.config.training.num_trials}, seed {seed}", flush=True)
    model = run.build_model(seed)
    if initial is not None:
        assign_weights(model.encoder.variables, initial.weights, initial.source)
    trial = run_trial(run, model, rows, dev, metric=results.metrics[0], seed=seed)
    results = dataclasses.replace(results, trials=(*results.trials, trial))
    if results.best is trial:
        step = tf.Variable(trial.epochs[trial.kept_epoch - 1].step, dtype=tf.int64, name="step")
        CheckpointManager(
            tf.train.Checkpoint(model=model, step=step), directory, interval=1, keep=0
        ).save(results.checkpoint)
    # From here on the directory stands for the best trial's weights; the others' may go.
    results.save(run.model_dir)
    checkpoints.remove(directory, set(checkpoints.steps(directory)) - {results.checkpoint})
    return results


def _swapped(examples: Sequence[Example]) -> list[Example]:
    """Returns pairs in both orders: every pair, then all of them turned round."""
    return [*examples, *(dataclasses.replace(example, texts=example.texts[::-1])
                         for example in examples)]


def threshold_of(model_dir: Path) -> float | None:
    """Returns the threshold that was best on dev in training; None if none was searched."""
    results = results_file.load(model_dir)
    if results is None or not results.trials:  # The model was converted, not trained here.
        return None
    return next(iter(results.best.scores.values())).get(THRESHOLD)


def _write_outputs(run: FinetuningRun, task: Task, dev: Mapping[str, Split],
                   results: Results) -> None:
    """Writes predictions, the server's files and pictures of the best trial."""
    predictor = Predictor(run.trial, run.trained_model())
    directory, threshold = run.model_dir / "predictions", threshold_of(run.model_dir)
    make_directory(directory)

    def predicted(name: str, split: Split) -> Scored:
        found = scored(predictor, split, threshold)
        predictions.writer_for(directory / f"{name}.jsonl", run.spec.kind)(found.records)
        return found

    on_dev = {name: predicted(name, split) for name, split in dev.items()}
    tests = {name: predicted(name, run.encode(examples)).records
             for name, examples in task.test.items()}
    # SQuAD's server scores the dev file too, as long as it has no answers for test.
    served = tests or ({name: one.records for name, one in on_dev.items()}
                       if run.spec.name in predictions.SCORED_ON_DEV else {})
    predictions.write_submission(run.model_dir / SUBMISSION, run.spec.name, served)
    _draw(run, task, on_dev, results)


def _draw(run: FinetuningRun, task: Task, on_dev: Mapping[str, Scored], results: Results) -> None:
    figures.draw_learning_curves(results, run.model_dir / "learning_curve.png")
    name, examples = next(iter(task.dev.items()))
    truth, found = run.kind.confusion(run.spec, examples, on_dev[name].records)
    if truth:
        figures.draw_confusion(
            truth, found, run.spec.label_words, f"{run.spec.name}, {name}",
            run.model_dir / "confusion_matrix.png")


def _print_header(run: FinetuningRun, task: Task, initial: Pretrained | None, rows: int,
                  done: int) -> None:
    spec, training = run.spec, run.config.training
    counts = [f"train {len(task.train):,}", *(
        f"{name} {len(examples):,}" for name, examples in (*task.dev.items(), *task.test.items()))]
    as_rows = "" if rows == len(task.train) else f" as {rows:,} rows"
    counts[0] += as_rows
    labels = f", {len(spec.labels)} labels" if spec.labels else ""
    if initial is None:
        begins = "nothing: every weight is new (trained from scratch)"
    else:
        begins = f"{initial.source}: {len(initial.encoder_weights)} weights; the head is new"
    print(f"task     {spec.name}: {spec.kind.replace('_', ' ')}{labels}; {', '.join(counts)}\n"
          f"encoder  initialised from {begins}\n"
          f"devices  {run.trial.strategy.num_replicas_in_sync} x "
          f"{device_name(run.trial.strategy)}, {training.precision.value}\n"
          f"trials   {done} done, {training.num_trials - done} to go; "
          f"{training.num_train_epochs:g} epochs of {run.config.num_train_steps(rows):,} steps in "
          "all", flush=True)
    for note in task.notes:
        print(f"note     {note}", flush=True)
