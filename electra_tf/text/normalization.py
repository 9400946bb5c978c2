"""What is done to text before it is cut into words: one value, wherever text is read."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from electra_tf.reading import strict_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class Normalization:
    """How `text.tokenizer` normalizes."""

    __pydantic_config__ = strict_json.STRICT

    lower_case: bool = True
    """Lower-case the text first."""
    strip_accents: bool = True
    """Decompose characters (NFD) and drop their accents. Korean needs False: NFD splits its
    syllables."""

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
        return cls(**{name: saved[name] for name in FACTS})

    def facts(self) -> dict[str, bool]:
        """Returns all fields by name, as files keep them."""
        return dataclasses.asdict(self)


UNCASED = Normalization()
"""As BERT's uncased models."""
FACTS = tuple(field.name for field in dataclasses.fields(Normalization))
"""Names of the fields."""
