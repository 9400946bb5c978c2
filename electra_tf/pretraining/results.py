"""The results of a run: the modes "eval" and "samples", and the last lines of training."""

import shlex
import sys
from collections.abc import Mapping

from absl import flags

from electra_tf.checkpoints.run_directory import EVALUATION_FILE, all_settings
from electra_tf.checkpoints.weights import assign_weights, read_checkpoint
from electra_tf.config.objectives import Measure, measures
from electra_tf.config.overrides import flags_of
from electra_tf.platform import command_line, strict_json
from electra_tf.platform.atomic_file import write_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.pretraining.evaluation import Evaluator
from electra_tf.pretraining.setup import Run
from electra_tf.reporting import learning_curves
from electra_tf.reporting.samples import terminal_page
from electra_tf.training import failures
from electra_tf.training.workers import is_chief

SHOWN_SAMPLES = 4
SAMPLED_BATCHES = 16
"""Batches out of which --mode=samples chooses."""
LITTLE_AUC = 0.6
"""Below this AUC a discriminator detects little more than token frequencies show."""
_LINE_SCORES = {
    "loss": "loss", "discriminator_auc": "AUC", "discriminator_recall": "recall",
    "restoring_accuracy": "encoder accuracy", "generator_accuracy": "generator accuracy"}
"""Scores of an evaluation's line."""


def evaluate(run: Run) -> None:
    """Scores the newest checkpoint on the held-out shards; prints and saves a table."""
    with failures.explained(run.require_records):
        evaluator, step = _restored_evaluator(run)
        print(report(run, evaluator.evaluate(), step, run.model_dir), flush=True)


def show_samples(run: Run) -> None:
    """Prints held-out sentences, the replaced tokens, and the discriminator's probabilities."""
    with failures.explained(run.require_records):
        evaluator, step = _restored_evaluator(run)
        samples = evaluator.samples(SHOWN_SAMPLES, SAMPLED_BATCHES)
    if not samples:
        raise UserError(f"objective.name={run.config.objective.name} fills in no words, so "
                        "there is nothing to show; --mode=eval scores it.")
    print(f"Held-out sentences after {step:,} steps\n")
    print(terminal_page(samples, color=sys.stdout.isatty()))


def _restored_evaluator(run: Run) -> tuple[Evaluator, int]:
    """Returns an evaluator of the newest checkpoint and the checkpoint's step."""
    if not run.examples("eval"):
        raise UserError(f"the records in {run.records} hold nothing out for evaluation. Build "
                        "them again by `python -m data_prep.build_pretraining_data` from at least "
                        "two documents: blank lines between them, and not --held_out_fraction=0.")
    model = run.build_model()
    with run.strategy.scope():
        weights, step = read_checkpoint(run.model_dir)
        assign_weights(model.variables, weights, str(run.model_dir))
    return Evaluator(run, model), step


def report(run: Run, results: Mapping[str, float], step: int, directory: Path, *,
           as_table: bool = True) -> str:
    """Writes an evaluation to eval_results.json; returns a table or, without `as_table`, a line."""
    write_json(directory / EVALUATION_FILE, {"step": step, **results})
    if not as_table:
        scores = [f"{words} {results[name]:.3f}" for name, words in _LINE_SCORES.items()
                  if name in results]
        return f"evaluation at step {step:,}: {', '.join(scores)}"
    held_out, units = run.examples("eval"), measures()
    used = run.config.runtime.eval_steps * run.config.runtime.eval_batch_size or held_out
    return "\n".join([
        f"evaluation at step {step:,} on {min(used, held_out):,} of {held_out:,} held-out examples",
        *(f"  {name:<28}{value:>9.4f}  {units.get(name, Measure()).unit}"
          for name, value in results.items())])


def saved_scores(model_dir: Path) -> dict[str, float | None]:
    """Returns the last evaluation of a run, "step" and scores by name; empty if there is none."""
    scores = model_dir / EVALUATION_FILE
    return strict_json.read(scores, dict[str, float | None]) if scores.exists() else {}


def show_ending(run: Run, data_dir: str) -> None:
    """Prints what the last evaluation means and the next commands, on the chief only."""
    if not is_chief(run.strategy):
        return
    if meaning := explanation(run, saved_scores(run.model_dir)):
        print(f"result   {meaning}")
    program, finetuning, demo = (shlex.join(words) for words in (
        command_line.this_program(), command_line.other_program(
            "electra-finetune", "electra_tf.finetuning.command", "run_finetuning.py"),
        command_line.other_program("electra-demo", "electra_tf.apps.demo.demo")))
    model_dir = shlex.quote(f"--model_dir={run.model_dir}")
    directories = f"{shlex.quote(f'--data_dir={data_dir}')} {model_dir}"
    steps = all_settings(run.model_dir)["training.num_train_steps"]
    # A run's directory doesn't hold the flags of devices and reports.
    extension = [f"--set={value}" for value in flags.FLAGS.set if value.startswith("runtime.")] + [
        f"--{name}={flags.FLAGS[name].value}"
        for name, setting in flags_of(run.config, "pretraining").items()
        if setting.name.startswith("runtime.") and flags.FLAGS[name].present]
    extension.append(f"--num_train_steps={2 * steps}")
    commands = [f"demo: {demo} {model_dir}",
                f"fine-tune: {finetuning} --task=cola --data_dir=glue "
                + shlex.quote(f"--init_checkpoint={run.model_dir}"),
                f"{steps:,} steps more: {program} {directories} {shlex.join(extension)}"]
    if run.examples("eval"):
        commands.insert(0, f"samples: {program} --mode=samples {directories}")
    print("next     " + "\n         ".join(commands), flush=True)


def explanation(run: Run, scores: Mapping[str, float | None]) -> str:
    """Returns sentences that explain the last evaluation; "" without its scores.

    The AUC on random replacements is compared with measured runs.
    """
    recall, precision, auc = (scores.get(f"discriminator_{name}")
                              for name in ("recall", "precision", "auc"))
    if None not in (recall, precision, auc):
        sentences = [f"the discriminator detects {100 * recall:.0f} % of the replaced tokens, and "
                f"{100 * precision:.0f} % of its detections are right; AUC {auc:.3f}, chance is "
                "0.5."]
        if auc < LITTLE_AUC:
            sentences.append("It has learned little so far: train longer, or see "
                        "docs/how_to/size_and_recipe.md.")
    else:
        sentences = [f"the {network} restores {100 * scores[name]:.0f} % of the masked tokens."
                for name, network in (
                    ("restoring_accuracy", "encoder"), ("generator_accuracy", "model"))
                if scores.get(name) is not None][:1]
    if scores.get("unigram_auc") is not None:
        tokens = scores["step"] * run.config.training.train_batch_size * run.length
        sentences.append(learning_curves.compare_with_measured(
            scores["unigram_auc"], tokens, run.config.model.discriminator))
    return " ".join(sentences)
