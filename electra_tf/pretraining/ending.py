"""The last lines of a training command: a verdict, and the next commands."""

import shlex
import sys
from collections.abc import Mapping
from typing import TextIO

from absl import flags

from electra_tf.config import pretraining_flags
from electra_tf.pretraining.results import saved_scores
from electra_tf.pretraining.setup import Run
from electra_tf.pretraining.stages import settings_of_run
from electra_tf.training.workers import is_chief

LITTLE_AUC = 0.6
"""Below it a discriminator hardly knows more than token frequencies
(docs/how_to/size_and_recipe.md)."""


def show(run: Run, data_dir: str, out: TextIO) -> None:
    """Prints what a finished run has learned and what can be done with it; the chief alone."""
    if not is_chief(run.strategy):
        return
    found = saved_scores(run.model_dir)
    lines = [f"verdict  {verdict(found)}"] if verdict(found) else []
    lines += ["next     " + "\n         ".join(
        f"{purpose}: {command}" for purpose, command in next_commands(run, data_dir).items())]
    print("\n".join(lines), file=out, flush=True)


def verdict(scores: Mapping[str, float | None]) -> str:
    """Returns what the last evaluation says, in a sentence or two; "" without one."""
    recall, precision, auc = (scores.get(f"discriminator_{name}")
                              for name in ("recall", "precision", "auc"))
    if None not in (recall, precision, auc):
        little = (" It has learned little so far: train longer, or see "
                  "docs/how_to/size_and_recipe.md."
                  if auc < LITTLE_AUC else "")
        return (f"the discriminator detects {100 * recall:.0f} % of the replaced tokens, and "
                f"{100 * precision:.0f} % of its detections are right; AUC {auc:.3f}, chance is "
                f"0.5.{little}")
    for name, network in (("restoring_accuracy", "encoder"), ("generator_accuracy", "model")):
        if scores.get(name) is not None:
            return f"the {network} restores {100 * scores[name]:.0f} % of the masked tokens."
    return ""


def next_commands(run: Run, data_dir: str) -> Mapping[str, str]:
    """Returns purpose -> command."""
    typed = sys.orig_argv[:len(sys.orig_argv) - len(sys.argv) + 1]
    program = shlex.join(typed)
    finetuning = program
    for ours, theirs in (("run_pretraining", "run_finetuning"), ("electra-pretrain",
                         "electra-finetune"), ("electra_tf.pretraining", "electra_tf.finetuning")):
        finetuning = finetuning.replace(ours, theirs)
    model_dir = shlex.join([f"--model_dir={run.model_dir}"])
    here = shlex.join([f"--data_dir={data_dir}", f"--model_dir={run.model_dir}"])
    steps = settings_of_run(run.model_dir)["training.num_train_steps"]
    commands = {
        "samples": f"{program} --mode=samples {here}",
        "demo": f"{shlex.quote(sys.orig_argv[0])} -m electra_tf.apps.demo.demo {model_dir}",
        "fine-tune": f"{finetuning} --task=cola --data_dir=glue "
                     + shlex.join([f"--init_checkpoint={run.model_dir}"]),
        f"{steps:,} steps more": " ".join([
            program, here, *map(shlex.quote, _runtime_flags()), f"--num_train_steps={2 * steps}"]),
    }
    if not run.rows("eval"):
        del commands["samples"]
    return commands


def _runtime_flags() -> list[str]:
    """Returns the flags of this command that a run's directory doesn't hold."""
    given = [name for name, setting in pretraining_flags.SETTINGS.items()
             if setting.startswith("runtime.") and flags.FLAGS[name].present]
    return [f"--set={value}" for value in flags.FLAGS.set if value.startswith("runtime.")] + [
        f"--{name}={flags.FLAGS[name].value}" for name in given]
