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

import functools
from typing import Literal

from absl import flags

from electra_tf.config import overrides
from electra_tf.config.finetuning import SCRATCH, FinetuningConfig, finetuning_config
from electra_tf.config.model import MODEL_SIZES
from electra_tf.core import command_line
from electra_tf.core.errors import UserError
from electra_tf.core.setting_flags import define_flags, from_flags, print_default
from electra_tf.core.settings import Section, setting, settings_of
from electra_tf.tasks.task import Kind

INIT_CHECKPOINT = "google/electra-small-discriminator"
"""Encoder that is fine-tuned by default."""
NEEDED = {"train": ["task"], "eval": ["model_dir"], "predict": ["model_dir", "input", "output"]}
"""Mode -> flags that it requires."""
_TRAINING = ("init_checkpoint", "model_size", "vocab_file", "normalization", "teacher",
             "scratch_baseline", "restart", "yes", "train", "test", "unlabelled")
_PREDICTING = ("input", "output", "overwrite")
UNUSED = {"train": _PREDICTING, "eval": (*_TRAINING, *_PREDICTING),
          "predict": (*_TRAINING, "dev", "dev_text_columns", "data_dir", "data_source")}
"""Mode -> flags that have no effect in it."""
EXAMPLES = {
    "train": "--task=classification --train=my.tsv --text_columns=text --label_column=label "
             "--init_checkpoint=google/electra-small-discriminator --model_dir=runs/mine, or "
             "--task=squad alone; docs/how_to/benchmark_tasks.md lists the data of benchmarks",
    "eval": "--mode=eval --model_dir=runs/mine --dev=dev.tsv",
    "predict": "--mode=predict --model_dir=runs/mine --input=new.tsv --output=predicted.tsv"}
"""Mode -> arguments of a complete command."""


class TaskFlags(Section, prefix="--"):
    """The task, and the files with its examples."""

    task: tuple[str, ...] | None = setting(None, """The task. For your own files: classification,
        regression, multilabel, tagging, question_answering or sentence_embeddings. Benchmarks:
        cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli, several of these separated by commas, or
        glue for all nine; squad, squad2; searchqa, triviaqa, newsqa, naturalqs (MRQA); chunk
        (CoNLL-2000); ner (CoNLL-2003).""")
    data_dir: str = setting("", """Directory of a benchmark's files, as published. Default: the data
        of TensorFlow Datasets.""")
    data_source: Literal["files", "tfds"] = setting("files", """Source of a benchmark: files in
        --data_dir, or tfds for TensorFlow Datasets; --data_dir is then its directory. Default:
        files if --data_dir, --train or --dev is given, otherwise tfds.""")
    train: tuple[str, ...] | None = setting(None, """Your training file, or several separated by
        commas. Classification, regression, multilabel and sentence embeddings take .tsv, .csv or
        .jsonl with one example per row, sentence embeddings also .txt with one text per line.
        Tagging takes CoNLL column files, or .jsonl with lists of words and tags. Extractive QA
        takes SQuAD's .json or MRQA's .jsonl. Files that end in .gz are decompressed.""")
    dev: tuple[str, ...] | None = setting(None, """Your development file, to score on, in the format
        of --train. Default: a tenth of --train, held out of training, with the same proportions of
        labels.""")
    test: tuple[str, ...] | None = setting(None, """Your test file, to predict after training, in
        the format of --train. Labels are optional.""")
    unlabelled: tuple[str, ...] | None = setting(None, """Your further training texts, which
        --teacher labels, in the format of --test.""")
    text_columns: tuple[str, ...] | None = setting(None, """Names or numbers of the columns with
        texts in your files: one or two, up to three for sentence embeddings; the words for tagging.
        Default: text; in CoNLL files the first.""")
    dev_text_columns: tuple[str, ...] | None = setting(None, """Names of the two columns with the
        pairs of texts in --dev (sentence embeddings). Default: the first two of --text_columns.""")
    label_column: str = setting("", """Name or number of the column with labels or tags in your
        files. For multilabel also several columns of 0 and 1, separated by commas. Default: label;
        in CoNLL files the last.""")
    key_column: str = setting("", """Name or number of the column with the ids of rows in your
        files. Default: line numbers.""")


class ModelFlags(Section, prefix="--"):
    """Mode, model and files of a command."""

    model_dir: str = setting("", """Directory of this run: settings, weights, results. Default:
        runs/TASK.""")
    mode: Literal["train", "eval", "predict"] = setting("train", """Mode: train and score a model,
        eval to score the model in --model_dir on dev, or predict to write its predictions for
        --input to --output.""")
    restart: bool = setting(False, """Delete an earlier run in --model_dir, and begin again. Prints
        what is deleted. On a terminal it asks first, without one it does not.""")
    yes: bool = setting(False, "Answer the question of --restart with yes, in scripts.")
    input: str = setting("", """File to predict: in the format of --test, or .txt with a text per
        line; - is standard input.""")
    output: str = setting("", """File to write predictions to: .jsonl for any task, .tsv (labels,
        numbers, tags), .txt (tags), .json (answers) or .npy (embeddings); - writes to standard
        output.""")
    overwrite: bool = setting(False, "Replace --output if it exists.")
    scratch_baseline: bool = setting(False, """Also fine-tune without pre-training, as controls:
        from the encoder's initialization if it is known, and from normal initialization, in folders
        from_scratch_... of --model_dir.""")
    init_checkpoint: str = setting("", """The pre-trained encoder: the directory of a run, a
        checkpoint of Google's code, a directory in Hugging Face's format, or a name on the Hugging
        Face Hub. none starts from random weights. Default: google/electra-small-discriminator.""")
    model_size: str = setting("", """Encoder size with --init_checkpoint=none: tiny, small, base,
        large, modern-tiny, modern-mini, modern-small or modern-base. Default: small.""")
    vocab_file: str = setting("", "Vocabulary file, needed with --init_checkpoint=none.")
    teacher: str = setting("", """Fine-tuned classifier to learn from as well, in any format of
        --init_checkpoint.""")
    normalization: str = setting("auto", """Text normalization with --init_checkpoint=none: that of
        --vocab_file for auto, otherwise a value that data_prep.build_vocab takes.""")


SETTINGS = overrides.flags_of(FinetuningConfig(), "finetuning")
"""Flags of single settings."""


def define() -> None:
    """Defines the flags."""
    define_flags(TaskFlags)
    define_flags(ModelFlags)
    overrides.define_setting_flags(SETTINGS, {
        size: finetuning_config(model) for size, model in MODEL_SIZES.items()})


def main() -> None:
    """Runs the mode that the flags ask for, with defaults for flags that were not given."""
    for section in (TaskFlags, ModelFlags):
        from_flags(section)  # Checks values before TensorFlow is imported.
    changes = overrides.given_settings(SETTINGS, FinetuningConfig())
    values = flags.FLAGS
    command_line.refuse_unused(UNUSED[values.mode], f"--mode={values.mode}")
    needed = [*NEEDED[values.mode]]
    if values.task:
        values.set_default("model_dir", "runs/" + "_".join(values.task))
    if values.task and values.mode == "train":
        values.set_default("init_checkpoint", INIT_CHECKPOINT)
        needed += ["model_dir", "init_checkpoint"]
        needed += ["train"] if set(values.task) & set(Kind) else []
    if values.init_checkpoint == SCRATCH:
        needed += ["vocab_file"]
    missing = [f"--{name}" for name in needed if not values[name].value]
    if missing:
        listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        raise UserError(f"{listed} {'are' if missing[1:] else 'is'} needed. For example: "
                        f"{command_line.command('finetune')} {EXAMPLES[values.mode]}")

    from electra_tf.finetuning import modes  # TensorFlow takes seconds to import.
    from electra_tf.tasks import registry

    # Tasks have known names before a default that contains them is printed.
    if values.mode == "train":
        registry.resolve(values.task)
    for name in needed:
        if name in ("model_dir", "init_checkpoint"):
            print_default(name)
    {"train": modes.train, "eval": modes.evaluate, "predict": modes.predict}[values.mode](changes)


COMMON = (
    "task", "data_dir", "train", "dev", "test", "text_columns", "label_column", "model_dir", "mode",
    "restart", "input", "output", "init_checkpoint", "num_train_epochs", "num_trials",
    "train_batch_size", "learning_rate", "max_seq_length", *overrides.ANY_SETTING)
"""Flags of the short `--help`."""

run = functools.partial(command_line.run, main, define, summary=__doc__, common=COMMON, groups=(
    overrides.help_groups({"Task and data": settings_of(TaskFlags),
                           "Model": settings_of(ModelFlags)}, SETTINGS)))


if __name__ == "__main__":
    run()
