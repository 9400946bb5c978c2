"""Command-line flags of `run_finetuning.py`."""

import dataclasses
from typing import Literal

from electra_tf.config import overrides
from electra_tf.config.finetuning import FinetuningConfig, finetuning_config
from electra_tf.config.pretraining import SIZES
from electra_tf.platform.setting_flags import define_flags
from electra_tf.platform.settings import Section, settings_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskFlags(Section, prefix="--"):
    """The task, and the files with its examples."""

    task: tuple[str, ...] | None = None
    """cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; several of them with commas, or glue for
    all nine; squad, squad2; searchqa, triviaqa, newsqa, naturalqs (MRQA); chunk (CoNLL-2000), ner
    (CoNLL-2003); for your own files classification, regression, tagging, question_answering."""
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
    text_columns: tuple[str, ...] | None = None
    """Your one or two columns of text, or that of words, by name or number. Default: text; the
    first column of a column file."""
    label_column: str = ""
    """Your column of labels or tags, by name or number. Default: label; the last column of a column
    file."""
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
    """Also train the network from random weights, in from_scratch within --model_dir."""
    init_checkpoint: str = ""
    """The pre-trained encoder: a run's directory, Google's checkpoint, a directory of Hugging
    Face's or a name on its hub; none trains from scratch. Default:
    google/electra-small-discriminator."""
    model_size: str = ""
    """From scratch: tiny, small, base or large. Default: small."""
    vocab_file: str = ""
    """From scratch: the vocabulary."""
    normalization: str = "auto"
    """From scratch: auto (the vocabulary's), or a normalization of data_prep.build_vocab."""


SETTINGS = overrides.flags_of(FinetuningConfig(), "finetuning")
GROUPS = overrides.help_groups(
    {"Task and data": settings_of(TaskFlags), "Model": settings_of(ModelFlags)}, SETTINGS)
SCRATCH = "none"
"""Value of `--init_checkpoint` that trains from scratch."""


def define() -> None:
    """Defines all flags of `run_finetuning.py`."""
    define_flags(TaskFlags)
    define_flags(ModelFlags)
    overrides.define_setting_flags(SETTINGS, {
        size: finetuning_config(config.model) for size, config in SIZES.items()})
