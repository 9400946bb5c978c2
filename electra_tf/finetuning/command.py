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

import dataclasses
import functools
from typing import Literal

from absl import flags

from electra_tf.config import overrides
from electra_tf.config.finetuning import SCRATCH, FinetuningConfig, finetuning_config
from electra_tf.config.model import MODEL_SIZES
from electra_tf.platform import command_line
from electra_tf.platform.errors import UserError
from electra_tf.platform.setting_flags import define_flags, from_flags, set_default
from electra_tf.platform.settings import Section, settings_of
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskFlags(Section, prefix="--"):
    """The task, and the files with its examples."""

    task: tuple[str, ...] | None = None
    """cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; several of them with commas, or glue for
    all nine; squad, squad2; searchqa, triviaqa, newsqa, naturalqs (MRQA); chunk (CoNLL-2000), ner
    (CoNLL-2003); for your own files classification, regression, multilabel, tagging,
    question_answering, sentence_embeddings."""
    data_dir: str = ""
    """Directory of a benchmark's files as it publishes them. Default: TensorFlow Datasets' data."""
    data_source: Literal["files", "tfds"] = "files"
    """files, or tfds for TensorFlow Datasets; --data_dir is then its directory of data sets.
    Default: files if --data_dir, --train or --dev is given, otherwise tfds."""
    train: tuple[str, ...] | None = None
    """Your training file, or several with commas: .tsv, .csv or .jsonl with a row per example; for
    tagging CoNLL columns or .jsonl with lists; for extractive QA SQuAD's .json or MRQA's .jsonl.
    Files that end in .gz are unpacked."""
    dev: tuple[str, ...] | None = None
    """Your file to score on, in the same form. Default: a tenth of --train, held out by label."""
    test: tuple[str, ...] | None = None
    """Your file to predict after training; labels are optional."""
    unlabelled: tuple[str, ...] | None = None
    """Your file like --test of further texts, which --teacher labels in training."""
    text_columns: tuple[str, ...] | None = None
    """Your one or two columns of text, or that of words, by name or number; for sentence embeddings
    up to three. Default: text; the first column of a column file."""
    dev_text_columns: tuple[str, ...] | None = None
    """Sentence embeddings: the two columns of --dev's pairs. Default: the first two of
    --text_columns."""
    label_column: str = ""
    """Your column of labels or tags, by name or number; several of 0 and 1 for multilabel, with
    commas. Default: label; the last column of a column file."""
    key_column: str = ""
    """Your column that names rows. Default: line numbers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelFlags(Section, prefix="--"):
    """Mode, model and files of a command."""

    model_dir: str = ""
    """Directory of this run: settings, weights, results. Default: runs/ and the task."""
    mode: Literal["train", "eval", "predict"] = "train"
    """train; eval scores --model_dir's model on dev; predict reads --input and writes --output."""
    restart: bool = False
    """Remove what an earlier run left in --model_dir, and begin again."""
    input: str = ""
    """To predict: a file like --test, .txt with a text per line, or - for standard input."""
    output: str = ""
    """Predictions: .jsonl, .tsv (labels, numbers, tags), .txt (tags), .json (answers), or - for
    stdout."""
    overwrite: bool = False
    """Replace an existing --output."""
    scratch_baseline: bool = False
    """Also train the same network without pre-training: from the initialization with which the
    encoder began, if it is known, and from normal initialization. Directories: from_scratch_... in
    --model_dir."""
    init_checkpoint: str = ""
    """The pre-trained encoder: a run's directory, Google's checkpoint, a directory of Hugging
    Face's or a name on its hub; none trains from scratch. Default:
    google/electra-small-discriminator."""
    model_size: str = ""
    """From scratch: tiny, small, base or large. Default: small."""
    vocab_file: str = ""
    """From scratch: the vocabulary."""
    teacher: str = ""
    """A fine-tuned classifier to learn from too, in the formats of --init_checkpoint."""
    normalization: str = "auto"
    """From scratch: auto (the vocabulary's), or a normalization of data_prep.build_vocab."""


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
    needed = [*NEEDED[values.mode]]
    if values.task:
        set_default("model_dir", "runs/" + "_".join(values.task))
    if values.task and values.mode == "train":
        set_default("init_checkpoint", INIT_CHECKPOINT)
        needed += ["model_dir", "init_checkpoint"]
        needed += ["train"] if set(values.task) & set(Kind) else []
    if values.init_checkpoint == SCRATCH:
        needed += ["vocab_file"]
    missing = [f"--{name}" for name in needed if not values[name].value]
    if missing:
        listed = " and ".join(filter(None, [", ".join(missing[:-1]), missing[-1]]))
        raise UserError(f"{listed} {'are' if missing[1:] else 'is'} needed. For example: python "
                        f"run_finetuning.py {EXAMPLES[values.mode]}")

    from electra_tf.finetuning import modes  # TensorFlow takes seconds to import.

    modes.MODES[values.mode](changes)


run = functools.partial(command_line.run, main, define, summary=__doc__, groups=(
    overrides.help_groups({"Task and data": settings_of(TaskFlags),
                           "Model": settings_of(ModelFlags)}, SETTINGS)))


if __name__ == "__main__":
    run()
