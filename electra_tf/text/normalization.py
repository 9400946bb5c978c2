"""What is done to text before it is cut into words.

A new option is a field here and a step in `tokenizer.WordSplitter`; files, flags, checks and
Hugging Face's form take the whole value.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from absl import flags

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown


@dataclasses.dataclass(frozen=True, kw_only=True)
class Normalization:
    """How `text.tokenizer` normalizes."""

    __pydantic_config__ = strict_json.STRICT

    lower_case: bool = True
    """Lower-case the text first."""
    strip_accents: bool = True
    """Decompose characters (NFD) and drop their accents, and with them the vowel signs of Indic
    scripts and Thai; Korean syllables are taken apart."""
    nfc: bool = False
    """Compose characters (NFC); and no word is [UNK] for its length: what is written without spaces
    is cut after 100 characters each."""

    def __post_init__(self):
        if self.nfc and self.strip_accents:
            raise ValueError("strip_accents can't be True with nfc.")

    @classmethod
    def of(cls, lower_case: bool | None = None, strip_accents: bool | None = None
           ) -> "Normalization":
        """Returns what is asked for; None lower-cases, and strips accents if it lower-cases."""
        lower = True if lower_case is None else lower_case
        return cls(lower_case=lower,
                   strip_accents=lower if strip_accents is None else strip_accents)

    @classmethod
    def of_facts(cls, saved: Mapping[str, Any]) -> "Normalization":
        """Returns the value whose `facts` are among those of a file."""
        return Normalization(
            **{name: saved[name] for name in FACTS if name in saved or name in NEEDED_FACTS})

    def facts(self) -> dict[str, Any]:
        """Returns the fields by name, as all files keep them: `nfc` only if it is on."""
        return {name: getattr(self, name) for name in FACTS
                if getattr(self, name) or name in NEEDED_FACTS}

    def __str__(self) -> str:
        """Returns the name of the mode, or the fields where it has none."""
        names = [name for name, mode in MODES.items() if mode == self]
        return names[0] if names else ", ".join(
            f"{name}={value}" for name, value in self.facts().items())


FACTS = tuple(field.name for field in dataclasses.fields(Normalization))
"""Names of the fields."""
NEEDED_FACTS = ("lower_case", "strip_accents")
"""Names of the fields that every file has."""
UNCASED = Normalization()
"""As BERT's uncased models."""
NFC = Normalization(lower_case=False, strip_accents=False, nfc=True)
"""Leaves text as it is, but for one way to write each character."""
MODES = {"bert_uncased": UNCASED, "bert_cased": Normalization.of(False), "nfc": NFC}
AUTO = "auto"


FLAGS = ("normalization", "lower_case", "strip_accents")
"""Names of the flags that say how text is read."""


def asked_for(values: flags.FlagValues) -> Normalization | None:
    """Returns the normalization that the flags `FLAGS` ask for; None if they leave it open.

    Raises:
        UserError: --normalization has an unknown value, or another flag contradicts it.
    """
    mode, *fields = (values[name].value for name in FLAGS)
    if mode not in (AUTO, *MODES):
        raise UserError(f"--normalization must be one of {', '.join((AUTO, *MODES))}. "
                        f"Received: {shown(mode)}")
    if set(fields) == {None}:
        return MODES.get(mode)
    if mode != AUTO:
        raise UserError(f"--normalization={mode} decides everything; leave out "
                        f"{' and '.join(f'--{name}' for name in FLAGS[1:])}.")
    return Normalization.of(*fields)


def refuse_other(values: flags.FlagValues, trained: Normalization, source: str) -> None:
    """Raises `UserError` if `FLAGS` contradict how the model of a source reads text."""
    for name in FLAGS[1:]:
        value = getattr(trained, name)
        if values[name].value not in (None, value):
            raise UserError(f"{source} was trained with --{'' if value else 'no'}{name}; leave the "
                            "flag out.")
    if values.normalization != AUTO and asked_for(values) != trained:
        raise UserError(f"{source} was trained with normalization {trained}, not "
                        f"{values.normalization}; leave the flag out.")
