"""The results of a run: the modes "eval" and "samples", and the last lines of training."""

import shlex
import sys
from collections.abc import Mapping

from absl import flags

from electra_tf.checkpoints.weights import assign_weights, read_checkpoint
from electra_tf.config import pretraining_flags
from electra_tf.config.objectives import Measure, measures
from electra_tf.platform import command_line, strict_json
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import MIB, Path
from electra_tf.pretraining.evaluation import Evaluator, evaluator_of
from electra_tf.pretraining.setup import Run, settings_of_run
from electra_tf.reporting import learning_curves
from electra_tf.reporting.json_file import write_json
from electra_tf.reporting.samples import terminal_page
from electra_tf.training import failures
from electra_tf.training.workers import is_chief

SHOWN_SAMPLES = 4
SAMPLED_BATCHES = 16
"""Batches out of which --mode=samples chooses."""
RESULTS_FILE = "eval_results.json"
LITTLE_AUC = 0.6
"""Below it a discriminator hardly knows more than token frequencies."""
HEALTHY = 0.03
"""Largest distance of a healthy run's AUC from the curve of measured runs."""
_IN_A_LINE = {"loss": "loss", "discriminator_auc": "AUC", "discriminator_recall": "recall",
              "restoring_accuracy": "encoder accuracy", "generator_accuracy": "generator accuracy"}
"""Scores of an evaluation's line."""


@failures.explained()
def evaluate(run: Run) -> None:
    """Scores the newest checkpoint on the held-out shards; prints and saves a table."""
    evaluator, step = _restored_evaluator(run)
    print(report(run, evaluator.evaluate(), step, run.model_dir), flush=True)


@failures.explained()
def show_samples(run: Run) -> None:
    """Prints held-out sentences, the replaced tokens, and the discriminator's probabilities."""
    evaluator, step = _restored_evaluator(run)
    samples = evaluator.samples(SHOWN_SAMPLES, SAMPLED_BATCHES)
    if not samples:
        raise UserError(f"objective.name={run.config.objective.name} fills in no words, so "
                        "there is nothing to show; --mode=eval scores it.")
    print(f"Held-out sentences after {step:,} steps\n")
    print(terminal_page(samples, colour=sys.stdout.isatty()))


def _restored_evaluator(run: Run) -> tuple[Evaluator, int]:
    """Returns an evaluator of the newest checkpoint and the checkpoint's step."""
    model = run.build_model()
    evaluator = evaluator_of(run, model)
    if evaluator is None:
        raise UserError(f"the records in {run.records} hold nothing out for evaluation. Build "
                        "them again from at least two documents: blank lines between them, and "
                        "not --held_out_fraction=0.")
    with run.strategy.scope():
        weights, step = read_checkpoint(run.model_dir)
        assign_weights(model.variables, weights, str(run.model_dir))
    return evaluator, step


def report(run: Run, results: Mapping[str, float], step: int, directory: Path, *,
           whole: bool = True) -> str:
    """Writes an evaluation to eval_results.json; returns it as a table or, in short, as a line."""
    write_json(directory / RESULTS_FILE, {"step": step, **results})
    if not whole:
        scores = [f"{words} {results[name]:.3f}" for name, words in _IN_A_LINE.items()
                  if name in results]
        return f"evaluation at step {step:,}: {', '.join(scores)}"
    held_out = run.rows("eval")
    used = run.config.runtime.eval_steps * run.config.runtime.eval_batch_size or held_out
    known = measures()
    return "\n".join([
        f"evaluation at step {step:,} on {min(used, held_out):,} of {held_out:,} held-out examples",
        *(f"  {name:<28}{value:>9.4f}  {known.get(name, Measure()).unit}"
          for name, value in results.items())])


def saved_scores(model_dir: Path) -> dict[str, float | None]:
    """Returns the last evaluation of a run, "step" and scores by name; empty if there is none."""
    scores = model_dir / RESULTS_FILE
    return strict_json.read(scores, dict[str, float | None], most=MIB) if scores.exists() else {}


def show_ending(run: Run, data_dir: str) -> None:
    """Prints what a finished run has learned and the next commands; the chief alone."""
    if is_chief(run.strategy):
        scores = saved_scores(run.model_dir)
        said = verdict(scores) + healthy_range(run, scores)
        commands = [f"{purpose}: {command}" for purpose, command in _commands(run, data_dir)]
        print((f"verdict  {said}\n" if said else "") + "next     " + "\n         ".join(commands),
              flush=True)


def verdict(scores: Mapping[str, float | None]) -> str:
    """Returns what the last evaluation says, in a sentence or two; "" without one."""
    recall, precision, auc = (scores.get(f"discriminator_{name}")
                              for name in ("recall", "precision", "auc"))
    if None not in (recall, precision, auc):
        little = (" It has learned little so far: train longer, or see "
                  "docs/how_to/size_and_recipe.md." if auc < LITTLE_AUC else "")
        return (f"the discriminator detects {100 * recall:.0f} % of the replaced tokens, and "
                f"{100 * precision:.0f} % of its detections are right; AUC {auc:.3f}, chance is "
                f"0.5.{little}")
    for name, network in (("restoring_accuracy", "encoder"), ("generator_accuracy", "model")):
        if scores.get(name) is not None:
            return f"the {network} restores {100 * scores[name]:.0f} % of the masked tokens."
    return ""


def healthy_range(run: Run, scores: Mapping[str, float | None]) -> str:
    """Returns the AUC on random replacements beside that of measured runs; "" without one."""
    auc, network = scores.get("unigram_auc"), run.config.model.discriminator
    if auc is None:
        return ""
    tokens = scores["step"] * run.config.training.train_batch_size * run.length
    like = learning_curves.nearest(network.num_layers, network.hidden_size)
    low, high = (like.auc(tokens) + distance for distance in (-HEALTHY, HEALTHY))
    return (f" On random replacements its AUC is {auc:.2f}; healthy range for this budget, "
            f"{tokens / 1e6:,.1f} million tokens: {low:.2f} to {high:.2f} (runs of {like.name} on "
            "Wikipedia and books; easier text and smaller vocabularies reach more).")


def _commands(run: Run, data_dir: str) -> list[tuple[str, str]]:
    """Returns purposes and commands."""
    program, finetuning, demo = (shlex.join(words) for words in (
        command_line.program(), command_line.other_program(
            "electra-finetune", "electra_tf.finetuning.command", "run_finetuning.py"),
        command_line.other_program("electra-demo", "electra_tf.apps.demo.demo")))
    model_dir = shlex.quote(f"--model_dir={run.model_dir}")
    here = f"{shlex.quote(f'--data_dir={data_dir}')} {model_dir}"
    steps = settings_of_run(run.model_dir)["training.num_train_steps"]
    # A run's directory doesn't hold the flags of devices and reports.
    again = [f"--set={value}" for value in flags.FLAGS.set if value.startswith("runtime.")] + [
        f"--{name}={flags.FLAGS[name].value}"
        for name, setting in pretraining_flags.SETTINGS.items()
        if setting.startswith("runtime.") and flags.FLAGS[name].present]
    samples = [("samples", f"{program} --mode=samples {here}")] if run.rows("eval") else []
    return [
        *samples,
        ("demo", f"{demo} {model_dir}"),
        ("fine-tune", f"{finetuning} --task=cola --data_dir=glue "
                      + shlex.quote(f"--init_checkpoint={run.model_dir}")),
        (f"{steps:,} steps more",
         " ".join([program, here, *map(shlex.quote, again), f"--num_train_steps={2 * steps}"]))]
