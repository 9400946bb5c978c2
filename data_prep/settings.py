"""The settings that determine the examples of a build."""

import dataclasses
from typing import Annotated, Any, Literal

from annotated_types import Interval

from data_prep.cleaning.settings import CleaningSettings
from data_prep.packing import MIN_SEQUENCE
from electra_tf.data.manifest import MAX_SEQUENCE_LENGTH
from electra_tf.platform.errors import UserError
from electra_tf.platform.settings import Section
from electra_tf.text.tokenization import Normalization

SHORT_EXAMPLE_RATES = {"full": 0.0, "reference": 0.05}
"""Defaults of --short_example_rate by packing; `full` never makes short examples."""
Fraction = Annotated[float, Interval(ge=0, le=1)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BuildSettings(Section, prefix="--"):
    """Settings of the steps from text to examples; flags have the same names."""

    max_seq_length: Annotated[int, Interval(ge=MIN_SEQUENCE, le=MAX_SEQUENCE_LENGTH)] = 128
    """Length of an example in tokens, with [CLS] and [SEP]."""
    packing: Literal["full", "reference"] = "full"
    """full: examples without padding; documents follow each other with a [SEP] between them.
    reference: one document per example with some padding, as ELECTRA's own builder makes them."""
    held_out_fraction: Annotated[float, Interval(ge=0, le=0.5)] = 0.01
    """Fraction of the documents held out for --mode=eval of run_pretraining.py: at least one
    document if there are two or more, unless 0."""
    shard_text_bytes: Annotated[int, Interval(ge=1000, le=1 << 30)] = 16 << 20
    """Largest text of one shard in bytes; a worker holds it in memory."""
    single_segment_rate: Fraction = 0.1
    """Fraction of the examples with one segment instead of two."""
    short_example_rate: Fraction = 0.0
    """Fraction of the examples with a random shorter length. --packing=reference has the default
    0.05; --packing=full makes no such examples."""
    seed: Annotated[int, Interval(ge=-2**63, lt=2**63)] = 0
    """Seed of the random choices, 64 bits."""
    cleaning: CleaningSettings = CleaningSettings()

    def identity(self, normalization: Normalization) -> dict[str, Any]:
        """Returns all settings by name, as an unfinished build and the manifest store them."""
        values = dataclasses.asdict(self)
        del values["cleaning"]
        return values | normalization.facts() | self.cleaning.identity()

    def __post_init__(self):
        super().__post_init__()
        if self.packing == "full" and self.short_example_rate:
            raise UserError("--short_example_rate belongs to --packing=reference: --packing=full "
                            f"makes no short examples. Received: {self.short_example_rate}")
