"""The flags that all commands share: which text, and how it is read."""

from absl import flags

from data_prep.sources.registry import open_source
from data_prep.sources.source import Options, Source
from electra_tf.platform.errors import UserError, shown
from electra_tf.text.normalization import AUTO

INPUT = ("input", "on_error", "wiki_headings", "tfds_data_dir", "tfds_split")
"""Names of the flags that say which text."""

flags.DEFINE_string("input", "", "Text files: patterns separated by commas; .txt, or .gz, .bz2, "
                    ".xz, .zst of it. UTF-8, a blank line between documents. Other sources have "
                    "names: wikipedia:PATTERN, wikiextractor:PATTERN, books:PATTERN, "
                    "jsonl:PATTERN#FIELD, parquet:PATTERN#COLUMN, tfds:NAME#FEATURE, and "
                    "embedded:python, the text that Python itself carries. A:0.7,B:0.3 mixes "
                    "sources in these shares. docs/data.md has the details.")
flags.DEFINE_string("on_error", "stop", "At a damaged document or file: stop, or skip it. The "
                    "build of records counts and lists what was skipped.")
flags.DEFINE_bool("wiki_headings", False, "Keep titles and headings of Wikipedia's articles, a "
                  "line each.")
flags.DEFINE_string("tfds_data_dir", "", "Where TensorFlow Datasets keeps its data sets; its own "
                    "directory if not given.")
flags.DEFINE_string("tfds_split", "train", "Split of a data set, in TensorFlow Datasets' words: "
                    "train+test, train[:10%].")
flags.DEFINE_string("normalization", AUTO, "How text is read: bert_uncased (lower case, no "
                    "accents), bert_cased, nfc (every letter as it is), or auto: a new "
                    "vocabulary's by the text's scripts, else as the vocabulary was learned. "
                    "docs/languages.md has the details.")
flags.DEFINE_bool("lower_case", None, "Instead of --normalization: lower-case the text.")
flags.DEFINE_bool("strip_accents", None, "Likewise: strip accents; as --lower_case if not given.")


def source() -> Source:
    """Returns the text that the command line names."""
    values = flags.FLAGS
    if values.on_error not in ("stop", "skip"):
        raise UserError(f"--on_error must be stop or skip. Received: {shown(values.on_error)}")
    return open_source(values.input, Options(
        headings=values.wiki_headings, tfds_data_dir=values.tfds_data_dir,
        tfds_split=values.tfds_split, skip_damaged=values.on_error == "skip"))
