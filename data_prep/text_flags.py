"""The flags that all commands share: which text, and how it is read."""

from absl import flags

from data_prep import sources
from electra_tf.text.normalization import Normalization

INPUT, TEXT = ("input",), ("lower_case", "strip_accents")
"""Their names."""

flags.DEFINE_string("input", "", "Text files: patterns separated by commas; .txt, or .gz, .bz2, "
                    ".xz of it. UTF-8, a blank line between documents. embedded:python reads the "
                    "text that Python itself carries.")
flags.DEFINE_bool("lower_case", True, "Lower-case the text.")
flags.DEFINE_bool("strip_accents", None, "Strip accents; as --lower_case if not given.")


def source() -> sources.Source:
    """Returns the text that the command line names."""
    return sources.open_source(flags.FLAGS.input)


def normalization() -> Normalization:
    """Returns how the command line wants text to be read."""
    return Normalization.of(flags.FLAGS.lower_case, flags.FLAGS.strip_accents)
