"""The flags that all commands share: which text, and how it is read."""

from absl import flags

from data_prep.sources.registry import open_source
from data_prep.sources.source import Options, Source
from electra_tf.platform.errors import UserError, shown
from electra_tf.text.normalization import AUTO

INPUT = ("input", "on_error", "wiki_headings", "tfds_data_dir", "tfds_split")
"""Names of the flags that say which text."""

flags.DEFINE_string("input", "", "The text: patterns of UTF-8 files (.txt, also compressed as .gz, "
                    ".bz2, .xz or .zst), separated by commas, with a blank line between "
                    "documents. Other sources have names: wikipedia:PATTERN, "
                    "wikiextractor:PATTERN, books:PATTERN, "
                    "jsonl:PATTERN#FIELD, parquet:PATTERN#COLUMN, tfds:NAME#FEATURE, and "
                    "embedded:python, the documentation in Python itself. A:0.7,B:0.3 mixes "
                    "sources in these shares. See docs/data.md.")
flags.DEFINE_string("on_error", "stop", "At a damaged document or file: stop, or skip it. Records' "
                    "manifests count and list skipped documents.")
flags.DEFINE_bool("wiki_headings", False, "Keep titles and headings of Wikipedia articles, one per "
                  "line.")
flags.DEFINE_string("tfds_data_dir", "", "Directory of TensorFlow Datasets. Default: its own.")
flags.DEFINE_string("tfds_split", "train", "Split of a data set, in the notation of TensorFlow "
                    "Datasets: train+test, train[:10%].")
flags.DEFINE_string("normalization", AUTO, "Normalization of the text: bert_uncased (lower case, "
                    "no accents), bert_cased, nfc (letters unchanged) or auto. auto chooses by the "
                    "scripts of the text for a new vocabulary, and otherwise uses the "
                    "vocabulary's. See docs/languages.md.")
flags.DEFINE_bool("lower_case", None, "Lower-case the text. Replaces --normalization.")
flags.DEFINE_bool("strip_accents", None, "Strip accents. Replaces --normalization. Default: as "
                  "--lower_case.")


def source() -> Source:
    """Returns the text that the command line names."""
    values = flags.FLAGS
    if values.on_error not in ("stop", "skip"):
        raise UserError(f"--on_error must be stop or skip. Received: {shown(values.on_error)}")
    return open_source(values.input, Options(
        headings=values.wiki_headings, tfds_data_dir=values.tfds_data_dir,
        tfds_split=values.tfds_split, skip_damaged=values.on_error == "skip"))
