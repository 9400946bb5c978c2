"""The flags that all commands share: which text, and how it is read."""

import dataclasses
from typing import Literal

from data_prep.sources.registry import open_source
from data_prep.sources.source import Options, Source
from electra_tf.platform.section_flags import define_flags, from_flags
from electra_tf.platform.settings import Section
from electra_tf.text.normalization import AUTO

INPUT = ("input", "on_error", "wiki_headings", "tfds_data_dir", "tfds_split")
"""Names of the flags that say which text."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextFlags(Section, prefix="--"):
    """The text, its sources' options, and its normalization."""

    input: str = ""
    """The text: patterns of UTF-8 files (.txt, also compressed as .gz, .bz2, .xz or .zst),
    separated by commas, with a blank line between documents. Other sources have names:
    wikipedia:PATTERN, wikiextractor:PATTERN, books:PATTERN, jsonl:PATTERN#FIELD,
    parquet:PATTERN#COLUMN, hf:OWNER/DATASET:CONFIG:SPLIT#COLUMN of the Hugging Face Hub,
    tfds:NAME#FEATURE, and embedded:docstrings or embedded:python, text that is installed anyway.
    A:0.7,B:0.3 mixes sources in these shares. See docs/how_to/data.md."""
    on_error: Literal["stop", "skip"] = "stop"
    """At a damaged document or file: stop, or skip it. Records' manifests count and list skipped
    documents."""
    wiki_headings: bool = False
    """Keep titles and headings of Wikipedia articles, one per line."""
    tfds_data_dir: str = ""
    """Directory of TensorFlow Datasets. Default: its own."""
    tfds_split: str = "train"
    """Split of a data set, in the notation of TensorFlow Datasets: train+test, train[:10%]."""
    normalization: str = AUTO
    """Normalization of the text: bert_uncased (lower case, no accents), bert_cased, nfc (letters
    unchanged) or auto. auto chooses by the scripts of the text for a new vocabulary, and otherwise
    uses the vocabulary's. See docs/how_to/languages.md."""
    lower_case: bool | None = None
    """Lower-case the text. Replaces --normalization."""
    strip_accents: bool | None = None
    """Strip accents. Replaces --normalization. Default: as --lower_case."""


define_flags(TextFlags)


def source() -> Source:
    """Returns the text that the command line names."""
    values = from_flags(TextFlags)
    return open_source(values.input, Options(
        headings=values.wiki_headings, tfds_data_dir=values.tfds_data_dir,
        tfds_split=values.tfds_split, skip_damaged=values.on_error == "skip"))
