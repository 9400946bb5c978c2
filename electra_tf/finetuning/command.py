r"""Fine-tunes a pre-trained ELECTRA on a task, scores it, and predicts with it.

    python run_finetuning.py --task=squad
    python run_finetuning.py --task=cola --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/cola
    python run_finetuning.py --task=glue --data_dir=glue --init_checkpoint=runs/small \
        --model_dir=runs/glue --num_trials=3
    python run_finetuning.py --task=classification --train=my.tsv --dev=my_dev.tsv \
        --text_columns=title,body --label_column=topic --init_checkpoint=runs/small \
        --model_dir=runs/topic
    python run_finetuning.py --mode=predict --model_dir=runs/topic --input=new.tsv \
        --output=topics.tsv

The first command downloads google/electra-small-discriminator and, from TensorFlow Datasets, SQuAD
1.1; it writes to runs/squad and prints the defaults that it uses. The task decides the recipe: the
paper's epochs and learning rate, unless a flag changes them. The same command continues an
interrupted run with the first trial that isn't finished. To serve a model:
`python -m electra_tf.apps.tools.export_model`.
"""

from absl import flags

from electra_tf.config import finetuning_flags
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError
from electra_tf.platform.setting_flags import from_flags, set_default
from electra_tf.tasks.task import Kind

INIT_CHECKPOINT = "google/electra-small-discriminator"
"""Encoder that is fine-tuned by default."""
NEEDED = {"train": ["task"], "eval": ["model_dir"], "predict": ["model_dir", "input", "output"]}
"""Mode -> flags that it requires."""
EXAMPLES = {
    "train": "--task=classification --train=my.tsv --text_columns=text --label_column=label "
             "--init_checkpoint=google/electra-small-discriminator --model_dir=runs/mine, or "
             "--task=squad alone; docs/how_to/fine_tuning.md says where the data of benchmarks are",
    "eval": "--mode=eval --model_dir=runs/mine --dev=dev.tsv",
    "predict": "--mode=predict --model_dir=runs/mine --input=new.tsv --output=predicted.tsv"}
"""Mode -> arguments of a complete command."""


def main() -> None:
    """Runs the mode that the flags ask for, with defaults for flags that were not given."""
    for section in (finetuning_flags.TaskFlags, finetuning_flags.ModelFlags):
        from_flags(section)  # Checks values before TensorFlow is imported.
    values = flags.FLAGS
    needed = [*NEEDED[values.mode]]
    if values.task:
        set_default("model_dir", "runs/" + "_".join(values.task))
    if values.task and values.mode == "train":
        set_default("init_checkpoint", INIT_CHECKPOINT)
        needed += ["model_dir", "init_checkpoint"]
        needed += ["train"] if set(values.task) & set(Kind) else []
    if values.init_checkpoint == finetuning_flags.SCRATCH:
        needed += ["vocab_file"]
    missing = [f"--{name}" for name in needed if not values[name].value]
    if missing:
        listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        raise UserError(f"{listed} {'are' if missing[1:] else 'is'} needed. For example: python "
                        f"run_finetuning.py {EXAMPLES[values.mode]}")

    from electra_tf.finetuning import modes  # TensorFlow takes seconds to import.

    modes.MODES[values.mode]()


run = command_line.program(
    main, finetuning_flags.define, summary=__doc__, groups=finetuning_flags.GROUPS)


if __name__ == "__main__":
    run()
