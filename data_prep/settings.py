"""What decides the examples of a build, checked."""

import dataclasses

from data_prep import packing
from data_prep.cleaning.settings import CleaningSettings
from electra_tf.data import consistency
from electra_tf.platform.errors import UserError, shown
from electra_tf.text.normalization import Normalization

SHORT_EXAMPLE_RATES = {"full": 0.0, "reference": 0.05}
"""Defaults by packing; `full` never makes short examples."""
_SMALLEST_SHARD = 1000
_LARGEST_SHARD = 1 << 30
"""Bytes of text, which a worker holds in memory."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildSettings:
    """Settings of the chain from text to examples; flags of the same names.

    Raises:
        UserError: a value is out of range or contradicts another.
    """

    max_seq_length: int = 128
    packing: str = "full"
    held_out_fraction: float = 0.01
    """Part of the documents that goes to the "eval" split."""
    shard_text_bytes: int = 16 << 20
    """At most so much text makes one shard."""
    single_segment_rate: float = 0.1
    short_example_rate: float = 0.0
    seed: int = 0
    cleaning: CleaningSettings = CleaningSettings()

    def identity(self, normalization: Normalization) -> dict[str, str | int | float | bool]:
        """Returns all of it, by name, as an unfinished build and the manifest keep it."""
        values = dataclasses.asdict(self)
        del values["cleaning"]
        return values | normalization.facts() | self.cleaning.identity()

    def __post_init__(self):
        for name, allowed, holds in (
            ("max_seq_length", f"at least {packing.SHORTEST_SEQUENCE}",
             self.max_seq_length >= packing.SHORTEST_SEQUENCE),
            ("max_seq_length", f"at most {consistency.LONGEST_SEQUENCE}",
             self.max_seq_length <= consistency.LONGEST_SEQUENCE),
            ("packing", f"one of {', '.join(packing.PACKINGS)}", self.packing in packing.PACKINGS),
            ("held_out_fraction", "in [0, 0.5]", 0 <= self.held_out_fraction <= 0.5),
            ("shard_text_bytes", f"at least {_SMALLEST_SHARD}",
             self.shard_text_bytes >= _SMALLEST_SHARD),
            ("shard_text_bytes", f"at most {_LARGEST_SHARD}",
             self.shard_text_bytes <= _LARGEST_SHARD),
            ("seed", "a whole number of 64 bits", -2**63 <= self.seed < 2**63),
            ("single_segment_rate", "in [0, 1]", 0 <= self.single_segment_rate <= 1),
            ("short_example_rate", "in [0, 1]", 0 <= self.short_example_rate <= 1),
        ):
            if not holds:
                raise UserError(f"--{name} must be {allowed}. Received: "
                                f"{shown(getattr(self, name))}")
        if self.packing == "full" and self.short_example_rate:
            raise UserError("--short_example_rate belongs to --packing=reference: --packing=full "
                            f"makes no short examples. Received: {self.short_example_rate}")
