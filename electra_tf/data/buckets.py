"""Batches of examples of similar length, padded to one of a few lengths.

The batches are a pure function of (lengths, seed, epoch).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

_STEP = 4  # Divisor of all lengths but the longest.
_POOL_BATCHES = 50  # Number of batches whose examples are sorted by length together.


@dataclasses.dataclass(frozen=True)
class Row:
    """One encoded example."""

    ids: np.ndarray  # int32 [n], with [CLS] and [SEP].
    segment_ids: np.ndarray  # int32 [n], 0 or 1.
    targets: Mapping[str, np.ndarray]
    """The head's other inputs: scalars, or one value per word, at most n."""


class RowBatch(NamedTuple):
    """Rows of equal length; every array has B as its first dimension."""

    ids: np.ndarray  # int32 [B, L].
    valid: np.ndarray  # bool [B, L], False on padding.
    segment_ids: np.ndarray  # int32 [B, L].
    present: np.ndarray  # bool [B], False on the padding rows of the last batch.
    targets: Mapping[str, np.ndarray]  # [B], or [B, L] padded with zeros.


def bucket_lengths(lengths: Sequence[int], max_length: int,
                   max_buckets: int = 8) -> tuple[int, ...]:
    """Returns the lengths, ascending, to which padding every row up takes the fewest tokens.

    `lengths` are the numbers of tokens of the rows; the last bucket is `max_length`. Each bucket is
    a shape of batches, which takes seconds to compile.

    >>> bucket_lengths([5] * 90 + [17] * 20 + [90], 128, max_buckets=3)
    (8, 20, 128)
    """
    tops = -(-np.asarray(lengths) // _STEP) * _STEP
    candidates, counts = np.unique(np.minimum(tops, max_length), return_counts=True)
    if candidates[-1] == max_length:
        candidates, counts = candidates[:-1], counts[:-1]
    below = np.concatenate([[0], np.cumsum(counts)]).tolist()  # Rows of the first candidates.
    # Number of candidates covered -> the fewest tokens of their rows, and the buckets that give
    # them; the last covered candidate is a bucket.
    choices: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    best = (below[-1] * max_length, ())
    for _ in range(max_buckets - 1):
        choices = {end: min((tokens + (below[end] - below[begin]) * top, (*buckets, top))
                            for begin, (tokens, buckets) in choices.items() if begin < end)
                   for end, top in enumerate(candidates.tolist(), start=1)
                   if min(choices, default=end) < end}
        best = min([best, *((tokens + (below[-1] - below[end]) * max_length, buckets)
                            for end, (tokens, buckets) in choices.items())])
    return (*best[1], max_length)


def plan_epoch(lengths: Sequence[int], batch_size: int, *, seed: int,
               epoch: int) -> list[np.ndarray]:
    """Returns the indices of every batch's examples, in an epoch's shuffled order.

    `lengths` are the numbers of tokens of the examples. One batch may have fewer than B examples.
    """
    numbers = np.random.default_rng([seed, epoch])
    order = numbers.permutation(len(lengths))
    pool = _POOL_BATCHES * batch_size
    pools = [order[first:first + pool] for first in range(0, len(order), pool)]
    sizes = np.asarray(lengths)
    # Ties stay in the shuffled order.
    ordered = [part[np.argsort(sizes[part], kind="stable")] for part in pools]
    batches = [part[first:first + batch_size]
               for part in ordered for first in range(0, len(part), batch_size)]
    return [batches[index] for index in numbers.permutation(len(batches))]


def plan_in_order_of_length(lengths: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Returns the indices of every batch's examples, longest first to detect a lack of memory."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    return [order[first:first + batch_size] for first in range(0, len(order), batch_size)]


def make_batch(rows: Sequence[Row], batch_size: int, lengths: Sequence[int],
               pad_id: int) -> RowBatch:
    """Pads 1 to B rows to the shortest of `lengths` that holds all, and the batch to B rows."""
    longest = max(len(row.ids) for row in rows)
    length = next(length for length in lengths if length >= longest)

    def columns(values: Sequence[np.ndarray], fill: int = 0) -> np.ndarray:
        padded = np.full([batch_size, length], fill, values[0].dtype)
        for line, value in zip(padded, values, strict=False):
            line[:len(value)] = value
        return padded

    def column(values: Sequence[np.ndarray]) -> np.ndarray:
        return np.array([*values, *[np.zeros_like(values[0])] * (batch_size - len(values))])

    targets = {}
    for name in rows[0].targets:
        values = [np.asarray(row.targets[name]) for row in rows]
        targets[name] = columns(values) if values[0].ndim else column(values)
    return RowBatch(
        ids=columns([row.ids for row in rows], pad_id),
        valid=columns([np.ones(len(row.ids), bool) for row in rows]),
        segment_ids=columns([row.segment_ids for row in rows]),
        present=np.arange(batch_size) < len(rows), targets=targets)
