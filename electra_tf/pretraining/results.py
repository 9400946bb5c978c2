"""The modes "eval" and "samples" of a trained model."""

import sys
from collections.abc import Callable, Mapping
from typing import TextIO

import tensorflow as tf
import tf_keras

from electra_tf.checkpoints.manager import restore_weights
from electra_tf.checkpoints.run_directory import CHECKPOINTS
from electra_tf.config.objectives import Measure, measures
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB, Path
from electra_tf.pretraining.evaluation import Evaluator, evaluator_of
from electra_tf.pretraining.setup import Run
from electra_tf.reporting.json_file import write_json
from electra_tf.reporting.samples import markdown_page, terminal_page
from electra_tf.training import failures

SHOWN_SAMPLES = 4
SAMPLED_BATCHES = 16
"""Batches out of which --mode=samples chooses."""
RESULTS_FILE = "eval_results.json"
_IN_A_LINE = {"loss": "loss", "discriminator_auc": "AUC", "discriminator_recall": "recall",
              "restoring_accuracy": "encoder accuracy", "generator_accuracy": "generator accuracy"}
"""Scores of an evaluation's line."""


@failures.explained()
def evaluate(run: Run) -> dict[str, float]:
    """Scores the newest checkpoint on the held-out shards; prints and saves a table."""
    evaluator, step = _restored_evaluator(run)
    results = evaluator.evaluate(run.config.runtime.eval_steps)
    report(run, results, step, sys.stdout)
    return results


@failures.explained()
def show_samples(run: Run) -> None:
    """Prints held-out sentences, the replaced tokens, and the discriminator's probabilities."""
    evaluator, step = _restored_evaluator(run)
    samples = evaluator.samples(SHOWN_SAMPLES, run.vocabulary, SAMPLED_BATCHES)
    if not samples:
        raise UserError(f"objective.name={run.config.objective.name} fills in no words, so "
                        "there is nothing to show; --mode=eval scores it.")
    print(f"Held-out sentences after {step:,} steps\n")
    print(terminal_page(samples, colour=sys.stdout.isatty()))


class HeldOut:
    """The evaluator of a training run, with the run's settings and output."""

    def __init__(self, run: Run, evaluator: Evaluator, out: TextIO):
        self._run, self._evaluator, self._out = run, evaluator, out

    def evaluate(self, go_on: Callable[[int], bool]) -> Mapping[str, float] | None:
        """Returns the scores; None if `go_on(batches)`, called after every batch, returns False."""
        return self._evaluator.evaluate(self._run.config.runtime.eval_steps, go_on)

    def report(self, results: Mapping[str, float], step: int) -> None:
        """Prints and writes the results of `evaluate`: a table at the end, before that a line."""
        whole = step >= self._run.config.training.num_train_steps
        report(self._run, results, step, self._out, whole=whole)

    def samples(self) -> str:
        """Returns sample corruptions, as Markdown."""
        return markdown_page(self._evaluator.samples(SHOWN_SAMPLES, self._run.vocabulary))


def report(run: Run, results: Mapping[str, float], step: int, out: TextIO, *,
           whole: bool = True) -> None:
    """Prints an evaluation, as a table or a line, and writes it to eval_results.json."""
    write_json(run.model_dir / RESULTS_FILE, {"step": step, **results})
    if not whole:
        scores = [f"{words} {results[name]:.3f}" for name, words in _IN_A_LINE.items()
                  if name in results]
        print(f"evaluation at step {step:,}: {', '.join(scores)}", file=out, flush=True)
        return
    held_out = run.rows("eval")
    used = run.config.runtime.eval_steps * run.config.runtime.eval_batch_size or held_out
    lines = [f"evaluation at step {step:,} on {min(used, held_out):,} of {held_out:,} held-out "
             "examples"]
    known = measures()
    lines += [f"  {name:<28}{value:>9.4f}  {known.get(name, Measure()).unit}"
              for name, value in results.items()]
    print("\n".join(lines), file=out, flush=True)


def saved_scores(model_dir: Path) -> dict[str, float | None]:
    """Returns the last evaluation of a run, "step" and scores by name; empty if there is none."""
    scores = model_dir / RESULTS_FILE
    return strict_json.read(scores, dict[str, float | None], most=MIB) if scores.exists() else {}


def _restored_evaluator(run: Run) -> tuple[Evaluator, int]:
    """Returns an evaluator of the newest checkpoint and the checkpoint's step."""
    model: tf_keras.Model = run.build_model()
    evaluator = evaluator_of(run, model)
    if evaluator is None:
        raise UserError(f"the records in {run.records} hold nothing out for evaluation. Build "
                        "them again from at least two documents: blank lines between them, and "
                        "not --held_out_fraction=0.")
    with run.strategy.scope():
        step = tf.Variable(0, dtype=tf.int64, trainable=False)
        restore_weights(model, step, run.model_dir / CHECKPOINTS)
    return evaluator, int(step.numpy())
