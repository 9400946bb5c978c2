"""What is done to text before it is cut into words: one value, wherever text is read."""

import dataclasses
from collections.abc import Mapping
from typing import Any

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
        """Returns what `facts` were made of, other facts among them."""
        return cls(**{name: saved[name] for name in FACTS if name in saved or name in NEEDED_FACTS})

    def facts(self) -> dict[str, bool]:
        """Returns the fields by name, as files keep them: `nfc` only where it is True."""
        facts = dataclasses.asdict(self)
        return {name: value for name, value in facts.items() if value or name in NEEDED_FACTS}

    def __str__(self) -> str:
        """Returns the name of the mode, or the fields where it has none."""
        names = [name for name, mode in MODES.items() if mode == self]
        return names[0] if names else ", ".join(
            f"{name}={value}" for name, value in self.facts().items())


NEEDED_FACTS = ("lower_case", "strip_accents")
"""Those that every file has; earlier versions had no others."""
FACTS = tuple(field.name for field in dataclasses.fields(Normalization))
"""Names of the fields."""
UNCASED = Normalization()
"""As BERT's uncased models."""
NFC = Normalization(lower_case=False, strip_accents=False, nfc=True)
"""Leaves text as it is, but for one way to write each character."""
MODES = {"bert_uncased": UNCASED, "bert_cased": Normalization.of(False), "nfc": NFC}
AUTO = "auto"


def asked_for(mode: str, lower_case: bool | None, strip_accents: bool | None
              ) -> Normalization | None:
    """Returns the normalization that flags of these names ask for; None if they leave it open.

    Args:
        mode: `AUTO` or one of `MODES`.
        lower_case: None if not given.
        strip_accents: None if not given.

    Raises:
        UserError: no such mode, or it and the other flags are given.
    """
    if mode not in (AUTO, *MODES):
        raise UserError(f"--normalization must be one of {', '.join((AUTO, *MODES))}. "
                        f"Received: {shown(mode)}")
    if lower_case is None and strip_accents is None:
        return MODES.get(mode)
    if mode != AUTO:
        raise UserError(f"--normalization={mode} says all; leave --lower_case and --strip_accents "
                        "out.")
    return Normalization.of(lower_case, strip_accents)
