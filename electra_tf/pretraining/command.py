r"""Pre-trains ELECTRA on records that data_prep built, evaluates it, or shows samples.

    python -m data_prep.build_vocab --input='corpus/*.txt' --output=vocab.txt --vocab_size=8000
    python -m data_prep.build_pretraining_data --input='corpus/*.txt' --vocab_file=vocab.txt \
        --output_dir=records --max_seq_length=128
    python run_pretraining.py --data_dir=records --model_dir=runs/small --model_size=small \
        --recipe=short --train_batch_size=16 --num_train_steps=28000
    python run_pretraining.py --data_dir=records --model_dir=runs/small --num_train_steps=56000

--data_dir=records and --model_dir=runs/base, runs/small, ... are the defaults. The same command
continues a run that was interrupted, to the same weights; without --model_size and --recipe it
takes all settings from the run. A larger --num_train_steps extends a finished run. Several GPUs
need no flag. To serve the discriminator: `python -m electra_tf.apps.tools.export_model`.

Expect a loss of 45 at the first step (ln V + 50 ln 2), 27 within some hundred steps, then a slow
fall. `python -m electra_tf.apps.planning.plan --budget=2h` proposes a size for two hours. Runs much
shorter than the paper's million steps need --recipe=short (docs/explanation/short_runs.md).
"""

import functools
import operator
import re
from typing import Any, Literal

from absl import flags

from electra_tf.checkpoints import run_directory
from electra_tf.checkpoints.run_directory import STEPS, read_identity
from electra_tf.config import overrides
from electra_tf.config.pretraining import SIZES, PretrainingConfig, resolve
from electra_tf.core import command_line, storage
from electra_tf.core.errors import UserError
from electra_tf.core.setting_flags import define_flags, from_flags, print_default
from electra_tf.core.settings import Section, setting, settings_of


class PretrainingFlags(Section, prefix="--"):
    """Mode, size and files of a command."""

    data_dir: str = setting("", "Directory of the records that data_prep built. Default: records.")
    model_dir: str = setting("", """Directory of this run: checkpoints, metrics, curves. Default:
        runs/small, runs/base, ...""")
    model_size: str = setting("", """Model size: tiny, small, base or large; with ModernBERT's
        layers modern-tiny, modern-mini, modern-small or modern-base. Default: the size of the run
        in --model_dir or of --init_checkpoint, otherwise small.""")
    recipe: Literal["paper", "short"] = setting("paper", """Recipe of training. paper has the
        settings of the paper, for a million steps. short has other initial weights, learning rates
        and dropout, for minutes to days on a few CPU cores or one GPU
        (docs/explanation/short_runs.md).""")
    mode: Literal["train", "eval", "samples"] = setting("train", """Mode: train a new run or
        continue a stopped one, eval to score the newest checkpoint on the held-out shards, or
        samples to show what it replaces and detects in some sentences.""")
    restart: bool = setting(False, """Delete an earlier run in --model_dir, and begin again. Prints
        what is deleted. On a terminal it asks first, without one it does not.""")
    yes: bool = setting(False, "Answer the question of --restart with yes, in scripts.")
    budget: str = setting("", """Time for a new run, such as 45m, 1h30m or 2d, instead of
        --num_train_steps. The speed of the first steps decides the number of steps, which the run
        keeps. Default: none.""")
    init_checkpoint: str = setting("", """Networks to continue from: the directory of another run, a
        checkpoint of Google's code, a directory in Hugging Face's format, or a name on the Hugging
        Face Hub. The run takes their size. The records need their vocabulary, or an extension of
        it. Default: none, random weights.""")
    vocab_file: str = setting("", """Vocabulary file; it must equal the vocabulary of the records,
        which is the default.""")


SETTINGS = overrides.flags_of(PretrainingConfig(), "pretraining")
"""Flags of single settings."""


def parse_duration(text: str) -> float:
    """Returns the seconds of a duration; `UserError` for another text or less than a minute.

    >>> parse_duration("1h30m"), parse_duration("0.5h"), parse_duration("2d")
    (5400.0, 1800.0, 172800.0)
    """
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
    match = re.fullmatch("".join(rf"(?:(\d{{1,9}}(?:\.\d{{1,9}})?){unit})?" for unit in units),
                         text.strip())
    amounts = match.groups(default="0") if match else "0000"
    seconds = sum(map(operator.mul, map(float, amounts), units.values()))
    if seconds < 60:
        raise UserError("--budget must be a time of a minute or more, such as 45m, 1h30m or 2d. "
                        f"Received: {text!r}")
    return seconds


def define() -> None:
    """Defines the flags."""
    define_flags(PretrainingFlags)
    overrides.define_setting_flags(SETTINGS, SIZES)


def pretraining_identity(model_dir: storage.Path) -> dict[str, Any]:
    """Returns the settings and facts of a run of pre-training; `UserError` for another one."""
    identity = read_identity(model_dir)
    if "objective.name" not in identity:
        raise UserError(f"{model_dir} holds a fine-tuned model; name another --model_dir.")
    return identity


def all_settings(model_dir: storage.Path) -> dict[str, Any]:
    """Returns the settings of the run in a directory, with the steps of all its stages."""
    saved = run_directory.settings_of(pretraining_identity(model_dir))
    objective = overrides.override(PretrainingConfig(), saved).objective
    if objective.generator_steps(2):  # It has two stages.
        directory = objective.generator_dir(model_dir)
        saved[STEPS] += read_identity(directory)[STEPS]
    return saved


def main() -> None:
    """Runs the mode that the flags ask for."""
    # Directories and their defaults.
    flags.FLAGS.set_default("model_dir", f"runs/{flags.FLAGS.model_size or 'small'}")
    flags.FLAGS.set_default("data_dir", "records")
    values = from_flags(PretrainingFlags)
    if values.mode != "train":
        command_line.refuse_unused(
            ("init_checkpoint", "restart", "yes", "budget"), f"--mode={values.mode}")
    for name in ("model_dir", "data_dir"):
        if not getattr(values, name):
            raise UserError(f"--{name} is needed: {flags.FLAGS[name].help}")
    data_dir, model_dir = values.data_dir, storage.utf8_path(values.model_dir)
    vocab_file = storage.path(values.vocab_file) if values.vocab_file else None

    # The number of steps: --budget decides it, unless the run exists.
    changes = overrides.given_settings(SETTINGS)
    saved, initial, shape, seconds = None, None, {}, None
    if values.budget:
        if STEPS in changes:
            raise UserError("--budget decides the number of steps; leave --num_train_steps out.")
        seconds = parse_duration(values.budget)
        if run_directory.has_run(model_dir) and not values.restart:
            changes[STEPS], seconds = all_settings(model_dir)[STEPS], None
            print(f"budget   {model_dir} keeps the {changes[STEPS]:,} steps that it began with; "
                  "--num_train_steps extends a finished run", flush=True)

    # Settings: those of the run, of --init_checkpoint, or of the size and the recipe.
    begins_anew = values.restart or values.model_size or flags.FLAGS["recipe"].present
    if values.mode == "train" and not begins_anew and run_directory.has_run(model_dir):
        saved = all_settings(model_dir)
    if values.init_checkpoint:
        from electra_tf.formats import pretrained  # TensorFlow takes seconds to import.
        from electra_tf.pretraining.run import shape_of

        initial = pretrained.read(storage.path(values.init_checkpoint), with_task=False)
        shape = {} if values.model_size else shape_of(initial)
    config = resolve(values.model_size, values.recipe, changes, saved=saved, shape=shape)
    if seconds is not None and config.objective.generator_steps(2):
        raise UserError(f"--budget is for runs of one stage, and objective.name="
                        f"{config.objective.name} has two; give --num_train_steps.")
    print_default("model_dir")
    print_default("data_dir")
    if values.restart:
        stages = config.objective.generator_dir(model_dir), model_dir
        run_directory.confirm_restart(filter(None, stages), ask=not values.yes)

    # Training, evaluation or samples; TensorFlow is imported after the settings are checked.
    from electra_tf.pretraining import evaluation, loop
    from electra_tf.pretraining.multi_worker import is_chief
    from electra_tf.pretraining.run import prepare_run

    if values.mode == "train":
        run = loop.pretrain(config, data_dir, model_dir, vocab_file, initial,
                            restart=values.restart, seconds=seconds)
        if is_chief(run.strategy):
            scores = evaluation.saved_scores(model_dir)
            show_ending(run, data_dir, evaluation.explanation(run, scores))
        return

    # Given settings must equal the run's, unless it resolved them itself; of the others only those
    # of runtime count.
    identity = pretraining_identity(model_dir)
    required = [*changes, *(["model"] if values.model_size else [])]
    given = {name: value for name, value in overrides.flatten(config).items()
             if (name in required or name.split(".")[0] in required) and name in identity
             and name != "model.vocab_size"
             and (name, value) not in (("training.precision", "auto"), ("data.max_seq_length", 0))}
    run_directory.refuse_differences(model_dir, {name: identity[name] for name in given}, given)
    config = overrides.override(config, run_directory.settings_of(identity))
    vocab_file = vocab_file or model_dir / run_directory.VOCABULARY_FILE
    run = prepare_run(config, data_dir, model_dir, vocab_file)
    {"eval": evaluation.evaluate, "samples": evaluation.show_samples}[values.mode](run)


def show_ending(run: Any, data_dir: str, meaning: str) -> None:
    """Prints what the scores of a `Run` that ended mean, and the next commands."""
    if meaning:
        print(f"result   {meaning}")

    # Programs and flags as this installation is called.
    shell = command_line.shell_command
    program, demo = command_line.this_program(), command_line.command("demo")
    model_dir = shell([f"--model_dir={run.model_dir}"])
    directories = f"{shell([f'--data_dir={data_dir}'])} {model_dir}"
    steps = all_settings(run.model_dir)[STEPS]
    # A run's directory doesn't hold the flags of devices and reports.
    extension = [f"--set={value}" for value in flags.FLAGS.set if value.startswith("runtime.")] + [
        flags.FLAGS[name].serialize() for name, setting in SETTINGS.items()
        if setting.name.startswith("runtime.") and flags.FLAGS[name].present]
    extension.append(f"--num_train_steps={2 * steps}")
    commands = [f"demo: {demo} {model_dir}",
                f"fine-tune: {command_line.command('finetune')} --task=classification "
                f"--train=labelled.csv {shell([f'--init_checkpoint={run.model_dir}'])}",
                f"twice as long: {program} {directories} {shell(extension)}"]
    if run.examples("eval"):
        commands.insert(0, f"samples: {program} --mode=samples {directories}")
    print("next     " + "\n         ".join(commands), flush=True)


COMMON = (
    "data_dir", "model_dir", "model_size", "recipe", "mode", "restart", "budget",
    "init_checkpoint", "num_train_steps", "train_batch_size", "learning_rate", "eval_every_steps",
    "save_checkpoints_steps", "tpu", *overrides.ANY_SETTING)
"""Flags of the short `--help`."""

run = functools.partial(command_line.run, main, define, summary=__doc__, common=COMMON, groups=(
    overrides.help_groups({"Model and data": settings_of(PretrainingFlags)}, SETTINGS)))


if __name__ == "__main__":
    run()
