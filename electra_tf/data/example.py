"""A batch of pre-training examples."""

from typing import Any, NamedTuple


class Batch(NamedTuple):
    """A batch of B examples of L positions: NumPy arrays, or tensors with static shapes."""

    ids: Any  # int32 [B, L], [PAD] past the end.
    padding_mask: Any  # bool [B, L], False on padding.
    segment_ids: Any
    """int32 [B, L], 0 for the first segment and for padding, 1 for the second segment."""
