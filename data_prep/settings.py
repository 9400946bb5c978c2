"""The settings of a build: cleaning, and the steps from text to examples."""

import dataclasses
from typing import Annotated, Any, Literal

from annotated_types import Interval

from data_prep.packing import MIN_SEQUENCE
from electra_tf.core.errors import UserError
from electra_tf.core.settings import Section, require, setting, settings_of
from electra_tf.data.manifest import MAX_SEQUENCE_LENGTH
from electra_tf.text.normalization import Normalization

REFERENCE_SHORT_RATE = 0.05  # Default of --short_example_rate with --packing=reference.
Fraction = Annotated[float, Interval(ge=0, le=1)]
MIN_TEST_WORDS = 8
"""Shorter test texts are ignored because they are ordinary phrases (Brown et al., 2020,
"Language Models are Few-Shot Learners", appendix C, has the same minimum)."""
LINE_RULES = ("unicode", "drop_letterless_lines", "min_line_characters", "max_line_characters")
"""The settings of single lines, which both commands have."""
Characters = Annotated[int, Interval(ge=0, le=1 << 20)]
_PARAMETERS = {
    "drop_duplicate_lines": ("min_duplicate_characters",),
    "drop_near_duplicates": ("near_duplicate_threshold", "near_duplicate_permutations"),
    "decontaminate": ("decontaminate_words",),
}
"""Filter -> its other settings."""


class CleaningSettings(Section, prefix="--"):
    """Settings of the filters; flags have the same names. All filters are off by default."""

    unicode: Literal["none", "nfc", "nfkc"] = setting("none", """Unicode normalization form to
        convert the text to, before the other filters.""")
    drop_letterless_lines: bool = setting(False, "Drop lines without a letter.")
    min_line_characters: Characters = setting(0, "Drop lines of fewer characters than this.")
    max_line_characters: Characters = setting(0, """Drop lines of more characters than this.
        Default: 0, none.""")
    drop_duplicate_lines: bool = setting(False, "Drop lines that occur earlier in the text.")
    min_duplicate_characters: Characters = setting(0, """Keep repeated lines of fewer characters
        than this.""")
    drop_near_duplicates: bool = setting(False, """Drop documents that are nearly equal to an
        earlier document.""")
    near_duplicate_threshold: Annotated[float, Interval(gt=0, lt=1)] = setting(
        0.8, "Jaccard similarity of word 5-grams from which documents are near duplicates.")
    near_duplicate_permutations: Annotated[int, Interval(ge=16, le=1024)] = setting(
        128, """Number of MinHash permutations. More permutations take more time and memory; the
        standard error of the similarity is at most 0.5 / sqrt(permutations).""")
    decontaminate: str = setting("", """Directory of task files (GLUE, SQuAD, MRQA, CoNLL, tables).
        Drop lines that contain one of their test texts.""")
    decontaminate_words: Annotated[int, Interval(ge=MIN_TEST_WORDS, le=100)] = setting(
        13, "Consecutive words that a line must share with a test text to be dropped.")

    @property
    def needs_survey(self) -> bool:
        """Returns True if the filters need a pass over the whole text first."""
        return self.drop_duplicate_lines or self.drop_near_duplicates

    def identity(self) -> dict[str, str | int | float | bool]:
        """Returns the settings of the filters that are on, by name.

        It omits the directory of task files; `BenchmarkTexts.to_dict` identifies their texts.
        """
        return {name: getattr(self, name) for filter in (*LINE_RULES, *_PARAMETERS)
                if not self._is_default(filter)
                for name in (filter, *_PARAMETERS.get(filter, ())) if name != "decontaminate"}

    def __post_init__(self):
        super().__post_init__()
        require(not 0 < self.max_line_characters < self.min_line_characters,
                "--max_line_characters",
                f"at least --min_line_characters={self.min_line_characters}",
                self.max_line_characters)
        # A filter's parameter without the filter would have no effect.
        for owner, parameters in _PARAMETERS.items():
            for name in parameters:
                if not getattr(self, owner) and not self._is_default(name):
                    raise UserError(f"--{name} belongs to --{owner}, which is off; give both or "
                                    "neither.")

    def _is_default(self, name: str) -> bool:
        return getattr(self, name) == settings_of(type(self))[name].default


class BuildSettings(Section, prefix="--"):
    """Settings of the steps from text to examples; flags have the same names."""

    max_seq_length: Annotated[int, Interval(ge=MIN_SEQUENCE, le=MAX_SEQUENCE_LENGTH)] = setting(
        128, "Maximum tokens of an example, including [CLS] and [SEP].")
    packing: Literal["full", "reference"] = setting("full", """How documents become examples. full
        joins documents with [SEP] to examples without padding. reference makes examples of single
        documents with padding, as Google's ELECTRA code does.""")
    held_out_fraction: Annotated[float, Interval(ge=0, le=0.5)] = setting(
        0.01, """Fraction of the documents to hold out for --mode=eval of run_pretraining.py. Of two
        or more documents at least one is held out. 0 holds out none.""")
    shard_text_bytes: Annotated[int, Interval(ge=1000, le=1 << 30)] = setting(
        16 << 20, """Maximum bytes of text per shard. A worker process holds this text in
        memory.""")
    single_segment_rate: Fraction = setting(0.1, """Fraction of the examples with one segment
        instead of two.""")
    short_example_rate: Fraction = setting(0.0, """Fraction of the examples that are cut to a random
        shorter length (--packing=reference only). Default: 0.05 with --packing=reference, otherwise
        0.""")
    seed: Annotated[int, Interval(ge=-2**63, lt=2**63)] = setting(0, "Seed of the random choices.")
    cleaning: CleaningSettings = CleaningSettings()

    def identity(self, normalization: Normalization) -> dict[str, Any]:
        """Returns all settings by name, as an unfinished build and the manifest store them."""
        values = dataclasses.asdict(self)
        del values["cleaning"]
        return values | normalization.to_dict() | self.cleaning.identity()

    def __post_init__(self):
        super().__post_init__()
        if self.packing == "full" and self.short_example_rate:
            raise UserError("--short_example_rate belongs to --packing=reference: --packing=full "
                            f"makes no short examples. Received: {self.short_example_rate}")
