"""Command-line flags of `run_finetuning.py`."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from electra_tf.config import export_flags, setting_flags
from electra_tf.config.finetuning import finetuning_config
from electra_tf.config.setting_flags import ANY_SETTING, HARDWARE, of_fields
from electra_tf.config.sizes import SIZES
from electra_tf.platform.errors import UserError

RECIPE = (
    *of_fields("training", "num_train_epochs"),
    *of_fields("optimizer", "learning_rate", "layerwise_decay"),
    *of_fields("training", "train_batch_size"),
    *of_fields("task", "max_seq_length", "doc_stride", "swap_pairs"),
    *of_fields("training", "freeze_layers"),
    *of_fields("task", "feature_based"),
    *of_fields("training", "precision"),
)
TRIALS = (
    *of_fields("training", "num_trials", "seed", "keep_best", "early_stopping"),
    *of_fields("runtime", "log_every_steps", "log_every_seconds", "eval_batch_size"),
)
SETTINGS = RECIPE + TRIALS + HARDWARE
FILES, TFDS = "files", "tfds"
"""What `--data_source` takes."""
NEEDED = {"train": ("task", "init_checkpoint"), "eval": (), "predict": ("input", "output"),
          "export": ("export_dir",)}
"""Flags that a mode can't do without, besides --model_dir."""
GROUPS = {
    "Task and data": ("task", "data_dir", "data_source", "train", "dev", "test", "text_columns",
                      "label_column", "key_column", "strict"),
    "Model": ("model_dir", "mode", "restart", "input", "output", "init_checkpoint", "model_size",
              "vocab_file", "normalization", "lower_case", "strip_accents"),
    "Recipe": tuple(flag.name for flag in RECIPE),
    "Trials and reports": tuple(flag.name for flag in TRIALS),
    "Hardware": tuple(flag.name for flag in HARDWARE),
    "Export": export_flags.NAMES,
    "Any other setting": ANY_SETTING,
}


def define() -> None:
    """Defines all flags of `run_finetuning.py`; None means that a flag wasn't given."""
    flags.DEFINE_list(
        "task", None, "cola, sst2, mrpc, stsb, qqp, mnli, qnli, rte, wnli; several of them with "
        "commas, or glue for all nine; squad, squad2; searchqa, triviaqa, newsqa, naturalqs (of "
        "MRQA); chunk (CoNLL-2000), ner (CoNLL-2003); blimp (pairs of sentences, scored without "
        "fine-tuning); or for your own files classification, regression, tagging, "
        "question_answering. glue_average prints one row of what --task=glue left in --model_dir.")
    flags.DEFINE_string("data_dir", None, "Directory of a benchmark's files as it publishes them.")
    flags.DEFINE_string(
        "data_source", FILES,
        "files, or tfds for TensorFlow Datasets, whose own directory --data_dir then is.")
    flags.DEFINE_string(
        "train", None, "Your training file: .tsv, .csv or .jsonl with a row per example; for "
        "tagging CoNLL columns or .jsonl with lists; for questions SQuAD's .json or MRQA's "
        ".jsonl.gz.")
    flags.DEFINE_string("dev", None, "Your file to score on, of the same form.")
    flags.DEFINE_string("test", None, "Your file to predict after training, labels not needed.")
    flags.DEFINE_list("text_columns", None, "Your one or two columns of text. Default: text.")
    flags.DEFINE_string("label_column", None, "Your column of labels. Default: label.")
    flags.DEFINE_string("key_column", None, "Your column that names rows. Default: line numbers.")
    flags.DEFINE_bool(
        "strict", False, "Refuse a file of questions in which an answer isn't at its offset.")
    flags.DEFINE_string("model_dir", None, "Directory of this run: settings, weights, results.")
    flags.DEFINE_bool(
        "restart", False, "Remove what an earlier run left in --model_dir, and begin again.")
    flags.DEFINE_string(
        "mode", "train", "train, eval (scores --model_dir's model on dev), predict (reads --input, "
        "writes --output) or export (writes --model_dir's model to --export_dir).")
    flags.DEFINE_string("input", None, "To predict: a file like --test.")
    flags.DEFINE_string(
        "output", None, "Predictions: .jsonl; or .tsv for labels and numbers, .txt for tags, .json "
        "for answers.")
    flags.DEFINE_string(
        "init_checkpoint", None, "The encoder to begin with: a run's directory, Google's "
        "checkpoint or a directory of Hugging Face's; none trains from scratch.")
    flags.DEFINE_string(
        "model_size", None, "From scratch: tiny, small, base or large. Else refuses another size.")
    flags.DEFINE_string(
        "vocab_file", None, "From scratch: the vocabulary. Else refuses another one.")
    flags.DEFINE_string(
        "normalization", "auto", "From scratch: bert_uncased, bert_cased, nfc, or auto: as the "
        "vocabulary was learned. Else refuses another one.")
    flags.DEFINE_bool("lower_case", None, "Instead of --normalization: lower-case the text.")
    flags.DEFINE_bool("strip_accents", None, "Likewise: strip accents; as --lower_case.")
    export_flags.define()
    setting_flags.define(SETTINGS, {
        size: finetuning_config(config.model) for size, config in SIZES.items()})


def given_settings() -> dict[str, Any]:
    """Returns setting -> value of everything that the command line and its file set."""
    return setting_flags.given_settings(SETTINGS)


def refuse_all_but(task: str, known: Sequence[str]) -> None:
    """Raises `UserError` if a flag was given that a task which trains nothing can't use.

    Args:
        task: its name.
        known: flags that it can use, besides --task and --mode.
    """
    own = {name for group in GROUPS.values() for name in group}
    more = sorted(name for name in own - {"task", "mode", *known} if flags.FLAGS[name].present)
    if more:
        raise UserError(f"--task={task} trains nothing and knows no --{more[0]}; it takes "
                        f"{', '.join(f'--{name}' for name in known)}.")


def require(*names: str) -> None:
    """Raises `UserError` for the first of these flags that wasn't given."""
    for name in names:
        if not flags.FLAGS[name].value:
            raise UserError(f"--{name} is needed: {flags.FLAGS[name].help}")
