"""Detects a discriminator whose logits are equal for all tokens."""

import math
from collections.abc import Mapping
from typing import Any

LOST_DEVIATION = 0.01
"""Standard deviation of the logits over tokens, as a fraction of its largest value so far."""
CHANCE = 0.01
"""Largest distance of an AUC from 0.50 that counts as chance."""
PATIENCE = 1000
"""Steps, after the warm-up, that an AUC may stay at chance."""
_FIX = ("Begin again with half the --learning_rate or with more --warmup_steps; with "
        "--recipe=short, if it isn't that.")


class CollapseWatch:
    """A check of the records of metrics.jsonl that warns once.

    A collapsed discriminator rarely recovers within a short run, and its encoder stops learning.
    """

    def __init__(self, warmup_steps: float):
        """Takes the steps of warm-up, during which an AUC of 0.50 is expected."""
        self._warmup_steps = warmup_steps
        self._largest = 0.0
        self._chance_since: int | None = None
        self._said = False

    def take(self, record: Mapping[str, Any]) -> str:
        """Returns a warning about a record; mostly ""."""
        found = not self._said and (self._lost_deviation(record) or self._chance(record))
        self._said = self._said or bool(found)
        return f"warning  {found} {_FIX}" if found else ""

    def _lost_deviation(self, record: Mapping[str, Any]) -> str:
        mean, square = (record.get(f"discriminator_logit{end}", math.nan)
                        for end in ("", "_squared"))
        if not math.isfinite(square):
            return ""
        deviation = math.sqrt(max(0.0, square - mean**2))
        self._largest = max(self._largest, deviation)
        if deviation >= LOST_DEVIATION * self._largest:
            return ""
        return (f"the discriminator has collapsed: at step {record['step']:,} its logits differ by "
                f"{deviation:.1e} (standard deviation over tokens), once by {self._largest:.2g}.")

    def _chance(self, record: Mapping[str, Any]) -> str:
        auc, step = record.get("discriminator_auc"), record["step"]
        if auc is None or step < self._warmup_steps:
            return ""
        if not abs(auc - 0.5) <= CHANCE:
            self._chance_since = None
        elif self._chance_since is None:
            self._chance_since = step
        elif step - self._chance_since >= PATIENCE:
            return (f"the discriminator guesses: its AUC is {auc:.3f} at step {step:,}, as it was "
                    f"at step {self._chance_since:,}.")
        return ""
