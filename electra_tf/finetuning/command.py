r"""Fine-tunes a pre-trained ELECTRA on a task, scores it, and predicts with it.

    python run_finetuning.py --task=squad
    python run_finetuning.py --task=cola --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/cola
    python run_finetuning.py --task=glue --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/glue --num_trials=3
    python run_finetuning.py --task=glue_average --model_dir=runs/glue
    python run_finetuning.py --task=classification --train=my.tsv --dev=my_dev.tsv \
        --text_columns=title,body --label_column=topic --init_checkpoint=runs/small \
        --model_dir=runs/topic
    python run_finetuning.py --mode=predict --model_dir=runs/topic --input=new.tsv \
        --output=topics.tsv
    python run_finetuning.py --mode=export --model_dir=runs/topic --export_dir=served/topic
    python run_finetuning.py --task=blimp --data_dir=blimp --init_checkpoint=runs/small \
        --model_dir=runs/blimp

The first command downloads google/electra-small-discriminator and, from TensorFlow Datasets, SQuAD
1.1; it writes to runs/squad. Each default that was used is printed.

The task decides the recipe: the paper's epochs and learning rate, unless a flag says otherwise.
The same command continues a run that was interrupted with the first trial that isn't finished.
"""

from absl import flags

from electra_tf.config import finetuning_flags, overrides
from electra_tf.platform import command_line, storage
from electra_tf.platform.errors import UserError
from electra_tf.platform.settings import from_flags, set_default
from electra_tf.tasks import glue, minimal_pairs
from electra_tf.tasks.examples import Kind

INIT_CHECKPOINT = "google/electra-small-discriminator"
"""Encoder that is fine-tuned by default."""


def run() -> None:
    """Runs the command: defines its flags, parses the command line and calls `main`."""
    finetuning_flags.define()
    command_line.run(main, summary=__doc__, groups=finetuning_flags.GROUPS)


def main() -> None:
    """Runs the mode that the flags ask for."""
    for section in (finetuning_flags.TaskFlags, finetuning_flags.ModelFlags):
        from_flags(section)  # Raises for a value out of bounds.
    if flags.FLAGS.task == [glue.AVERAGE]:
        _report_glue_average()
        return
    _set_defaults()
    with overrides.naming_flags(finetuning_flags.SETTINGS):
        _run(flags.FLAGS.mode)


def _set_defaults() -> None:
    """Chooses values of flags that were not given; `UserError` that names all that are needed."""
    values = flags.FLAGS
    needed = list(finetuning_flags.NEEDED[values.mode])
    if values.task:
        set_default("model_dir", "runs/" + "_".join(values.task))
    if values.task and values.mode == "train":
        set_default("init_checkpoint", INIT_CHECKPOINT)
        needed += ["model_dir", "init_checkpoint"]
        needed += ["train"] if set(values.task) & set(Kind) else []
    if values.init_checkpoint == finetuning_flags.SCRATCH and values.task != [minimal_pairs.NAME]:
        needed += ["vocab_file"]
    finetuning_flags.require(*needed)


def _report_glue_average() -> None:
    from electra_tf.finetuning import glue_average

    set_default("model_dir", f"runs/{glue.ALL}")
    finetuning_flags.require("model_dir")
    finetuning_flags.refuse_all_but(glue.AVERAGE, ("model_dir",))
    if flags.FLAGS.mode != "train":
        raise UserError(f"--task={glue.AVERAGE} has no --mode. Received: {flags.FLAGS.mode!r}")
    glue_average.report(storage.path(flags.FLAGS.model_dir))


def _run(mode: str) -> None:
    from electra_tf.finetuning import modes  # TensorFlow takes seconds to import.

    if mode == "train" and modes.is_minimal_pairs():
        modes.score_minimal_pairs()
    elif mode == "train":
        # What can't be exported is refused before hours of training.
        targets = _targets(modes.task_names()) if flags.FLAGS.export_dir else []
        runs = modes.train()
        for run, target in zip(runs, targets, strict=False):
            _export(run.model_dir, target)
    elif mode == "eval":
        modes.evaluate()
    elif mode == "predict":
        modes.predict()
    else:
        (target,) = _targets(["model"])
        _export(storage.path(flags.FLAGS.model_dir), target, finetuning_flags.given_settings())


def _targets(names):
    """Returns where the models of one or several tasks go."""
    from electra_tf.export.saved_model import Target

    values = flags.FLAGS
    directory = storage.path(values.export_dir)
    return [Target.of(directory / name if len(names) > 1 else directory, values.export_version,
                      values.serving_precision) for name in names]


def _export(model_dir, target, changes=()) -> None:
    from electra_tf.checkpoints.pretrained import read_run
    from electra_tf.export import card, saved_model, servable
    from electra_tf.finetuning import outputs, setup

    run = setup.prepare_trained(model_dir, dict(changes) | {
        "training.precision": "float32", "runtime.distribution_strategy": "one_device"})
    saved_model.export(servable.of_task(
        run.trained_model(), run.spec, run.config.task, run.text, outputs.threshold_of(model_dir)),
        target, lambda directory: card.write(
            directory, read_run(model_dir), model_dir, title=str(target.directory),
            saved_model=True))


if __name__ == "__main__":
    run()
