"""The flags of all measures of cleaning, for the command that builds records."""

import dataclasses

from absl import flags

from data_prep import line_rule_flags
from data_prep.cleaning.settings import CleaningSettings

_CORPUS = (
    "drop_duplicate_lines", "min_duplicate_characters", "drop_near_duplicates",
    "near_duplicate_threshold", "near_duplicate_permutations", "languages", "language_confidence",
    "min_language_characters", "decontaminate", "decontaminate_words")
CLEANING = (*line_rule_flags.LINE_RULES, *_CORPUS)
"""Their names."""

_DEFAULT = CleaningSettings()

flags.DEFINE_bool("drop_duplicate_lines", _DEFAULT.drop_duplicate_lines,
                  "Drop lines that stand in the text already; the first one stays.")
flags.DEFINE_integer("min_duplicate_characters", _DEFAULT.min_duplicate_characters,
                     "Lines of fewer characters may repeat.")
flags.DEFINE_bool("drop_near_duplicates", _DEFAULT.drop_near_duplicates,
                  "Drop documents that nearly equal another one; the first one stays.")
flags.DEFINE_float("near_duplicate_threshold", _DEFAULT.near_duplicate_threshold,
                   "Jaccard similarity of word 5-grams from which documents are nearly equal.")
flags.DEFINE_integer("near_duplicate_permutations", _DEFAULT.near_duplicate_permutations,
                     "MinHash permutations: more are more exact, and take more time and memory.")
flags.DEFINE_list("languages", list(_DEFAULT.languages),
                  "Drop documents that are in none of these languages, for example en,de.")
flags.DEFINE_float("language_confidence", _DEFAULT.language_confidence,
                   "The least probability that a document is in one of --languages.")
flags.DEFINE_integer("min_language_characters", _DEFAULT.min_language_characters,
                     "Documents of fewer letters stay, whatever their language.")
flags.DEFINE_string("decontaminate", _DEFAULT.decontaminate,
                    "Directory of task files (GLUE, SQuAD, MRQA, CoNLL, tables): drop lines that "
                    "hold one of their test texts.")
flags.DEFINE_integer("decontaminate_words", _DEFAULT.decontaminate_words,
                     "So many consecutive words of a test text are enough.")


def cleaning() -> CleaningSettings:
    """Returns what the command line wants to be cleaned."""
    values = {name: flags.FLAGS[name].value for name in _CORPUS}
    codes = tuple(filter(None, (code.strip() for code in values.pop("languages"))))
    return dataclasses.replace(line_rule_flags.line_rules(), languages=codes, **values)
