"""Which measures clean a text, and how strictly."""

import dataclasses

from electra_tf.platform.errors import UserError, shown

UNICODE_FORMS = ("none", "nfc", "nfkc")
SHORTEST_QUESTION = 8
"""Words; test questions of fewer aren't looked for: they are ordinary phrases (Brown et al., 2020,
"Language Models are Few-Shot Learners", appendix C, takes 8 as the least too)."""
_LONGEST_LINE = 1 << 20
_MOST_PERMUTATIONS = 1024
_MOST_WORDS = 100
_MOST_LETTERS = 1000
"""Half of what is looked at of a document."""
_PARAMETERS = {
    "drop_duplicate_lines": ("min_duplicate_characters",),
    "drop_near_duplicates": ("near_duplicate_threshold", "near_duplicate_permutations"),
    "languages": ("language_confidence", "min_language_characters"),
    "decontaminate": ("decontaminate_words",),
}
"""Measure -> the settings that mean something with it alone."""
_ALONE = ("unicode", "drop_letterless_lines", "drop_boilerplate", "min_line_characters",
          "max_line_characters")


@dataclasses.dataclass(frozen=True, kw_only=True)
class CleaningSettings:
    """Settings of the measures; flags of the same names. All of them are off by default.

    Raises:
        UserError: a value is out of range, a language is unknown, or a setting belongs to a
            measure that is off.
    """

    unicode: str = "none"
    """The normalization form that text is brought into: "none", "nfc" or "nfkc"."""
    drop_letterless_lines: bool = False
    drop_boilerplate: bool = False
    """Lines that `line_rules.is_boilerplate` knows."""
    min_line_characters: int = 0
    max_line_characters: int = 0
    """0: any number."""
    drop_duplicate_lines: bool = False
    min_duplicate_characters: int = 0
    """Shorter lines may repeat."""
    drop_near_duplicates: bool = False
    near_duplicate_threshold: float = 0.8
    """Jaccard similarity of word 5-grams from which a document is a copy of another, in (0, 1)."""
    near_duplicate_permutations: int = 128
    """Of MinHash; the standard error of the similarity is at most 0.5 / sqrt of them."""
    languages: tuple[str, ...] = ()
    """ISO 639 codes of the documents that stay; empty: all stay."""
    language_confidence: float = 0.5
    """The least probability that a document is in one of `languages`, in (0, 1)."""
    min_language_characters: int = 100
    """Documents with fewer letters stay whatever their language, which nobody could tell."""
    decontaminate: str = ""
    """Directory of task files; empty: none."""
    decontaminate_words: int = 13
    """n of the word n-grams that a line has in common with a test question."""

    @property
    def needs_survey(self) -> bool:
        """Whether a look at the whole text comes before anything can be decided."""
        return self.drop_duplicate_lines or self.drop_near_duplicates or bool(self.languages)

    def measures(self) -> list[str]:
        """Returns the names of the measures that are on."""
        return [name for name in (*_ALONE, *_PARAMETERS) if getattr(self, name) != _default(name)]

    def identity(self) -> dict[str, str | int | float | bool]:
        """Returns the settings of the measures that are on, by name.

        The task files are left out: what was read from them counts, not where they are.
        """
        names = [name for measure in self.measures()
                 for name in (measure, *_PARAMETERS.get(measure, ())) if name != "decontaminate"]
        values = {name: getattr(self, name) for name in names}
        return {name: ",".join(value) if isinstance(value, tuple) else value
                for name, value in values.items()}

    def __post_init__(self):
        for name, allowed, holds in (
            ("unicode", f"one of {', '.join(UNICODE_FORMS)}", self.unicode in UNICODE_FORMS),
            *((name, f"in [0, {_LONGEST_LINE}]", 0 <= getattr(self, name) <= _LONGEST_LINE)
              for name in ("min_line_characters", "max_line_characters",
                           "min_duplicate_characters")),
            ("min_language_characters", f"in [0, {_MOST_LETTERS}]",
             0 <= self.min_language_characters <= _MOST_LETTERS),
            ("near_duplicate_threshold", "in (0, 1)", 0 < self.near_duplicate_threshold < 1),
            ("near_duplicate_permutations", f"in [16, {_MOST_PERMUTATIONS}]",
             16 <= self.near_duplicate_permutations <= _MOST_PERMUTATIONS),
            ("language_confidence", "in (0, 1)", 0 < self.language_confidence < 1),
            ("decontaminate_words", f"in [{SHORTEST_QUESTION}, {_MOST_WORDS}]",
             SHORTEST_QUESTION <= self.decontaminate_words <= _MOST_WORDS),
        ):
            if not holds:
                raise UserError(f"--{name} must be {allowed}. Received: "
                                f"{shown(getattr(self, name))}")
        if 0 < self.max_line_characters < self.min_line_characters:
            raise UserError(f"--max_line_characters must be at least --min_line_characters="
                            f"{self.min_line_characters}. Received: {self.max_line_characters}")
        for measure, parameters in _PARAMETERS.items():
            for name in parameters:
                if not getattr(self, measure) and getattr(self, name) != _default(name):
                    raise UserError(f"--{name} belongs to --{measure}, which is off; give both or "
                                    "neither.")
        if self.languages:
            # Here, because its model takes a second to load.
            from data_prep.cleaning import languages
            languages.require_known(self.languages)


def _default(name: str) -> object:
    return CleaningSettings.__dataclass_fields__[name].default
