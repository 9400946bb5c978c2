"""Where the rows of an example begin, which `electra_tf.data.cutting` cuts; needs no TensorFlow.

An example [CLS] A [SEP] B [SEP] of the build's length has room for R = (built - 2) // (L - 2)
rows [CLS] ... [SEP], which hold its text in order. What is left over, (built - 2) % (L - 2) tokens
(6 of 510, for 128 from 512), stays out: at the example's beginning and end, another part in
another epoch.
"""

import dataclasses
from typing import Any

SPECIAL = 2
"""[CLS] and the last [SEP] of a row."""


@dataclasses.dataclass(frozen=True)
class RowPlaces:
    """How many rows an example gives, and where they begin."""

    built: int
    """Tokens of an example as stored."""
    length: int
    """L, tokens of a row, at most `built`."""

    @property
    def rows(self) -> int:
        """R, rows of an example; 1 if nothing is cut."""
        return (self.built - SPECIAL) // (self.length - SPECIAL)

    @property
    def left_over(self) -> int:
        """Tokens of an example that are in none of its rows."""
        return (self.built - SPECIAL) % (self.length - SPECIAL)

    def first_tokens(self, rows: Any, draw: Any) -> Any:
        """Returns the position, int64 [n], of each row's first token after [CLS].

        Args:
            rows: int64 [n], number of the row within its example.
            draw: int64 [], 0 or more; decides how much of the rest is before the first row.
        """
        return 1 + draw % (self.left_over + 1) + rows * (self.length - SPECIAL)
