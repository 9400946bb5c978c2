"""Batches of similar lengths, padded to one of a few: a function of (lengths, seed, epoch)."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

_STEP = 4  # Divisor of all lengths but the longest, and of numbers of parts above it.
COMPILED_TOKENS = 10_000
"""Tokens of padding that a bucket has to save in all epochs to be worth its compilation."""
_POOL_BATCHES = 50  # Number of batches whose examples are sorted by length together.


@dataclasses.dataclass(frozen=True)
class Row:
    """One encoded example: n tokens, or G parts of n tokens, which the encoder reads alone."""

    ids: np.ndarray  # int32 [n] or [G, n], with [CLS] and [SEP].
    segment_ids: np.ndarray  # int32 of the same shape, 0 or 1.
    targets: Mapping[str, np.ndarray]  # The head's other inputs, of equal shapes in all rows.
    word_targets: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Inputs with one value per word, at most n."""
    padding_mask: np.ndarray | None = None
    """bool [G, n], False on the padding of shorter parts; None: no padding."""


class RowBatch(NamedTuple):
    """Examples of equal length; every array has B as its first dimension."""

    ids: np.ndarray  # int32 [B, L], or [B, G, L] for examples with parts.
    padding_mask: np.ndarray  # bool of the same shape, False on padding; see `make_batch`.
    segment_ids: np.ndarray  # int32 of the same shape.
    present: np.ndarray  # bool [B], False on the padding rows of the last batch.
    targets: Mapping[str, np.ndarray]  # [B, ...]; those of words are [B, L], padded with zeros.


def bucket_lengths(lengths: Sequence[int], max_length: int, max_buckets: int = 8,
                   bucket_cost: int = 0) -> tuple[int, ...]:
    """Returns the lengths, ascending, to which padding every row up takes the fewest tokens.

    `lengths` are the numbers of tokens of the rows; the last bucket is `max_length`. Each bucket is
    a shape of batches, which takes seconds to compile; it counts as `bucket_cost` tokens.

    >>> bucket_lengths([5] * 90 + [17] * 20 + [90], 128, max_buckets=3)
    (8, 20, 128)
    """
    # Candidates are the rows' lengths, rounded up to multiples of 4; `max_length` is always one.
    tops = -(-np.asarray(lengths) // _STEP) * _STEP
    candidates, counts = np.unique(np.minimum(tops, max_length), return_counts=True)
    has_longest = candidates[-1] == max_length
    if has_longest:
        candidates, counts = candidates[:-1], counts[:-1]
    below = np.concatenate([[0], np.cumsum(counts)]).tolist()  # Rows of the first candidates.

    # Dynamic programming over the number of buckets. Number of candidates covered -> the fewest
    # tokens of their rows, and the buckets that give them; the last covered candidate is a bucket.
    choices: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    best = (below[-1] * max_length + bucket_cost, ())
    for _ in range(max_buckets - 1):
        fewer, choices = choices, {}
        for end, top in enumerate(candidates.tolist(), start=1):
            options = [(tokens + (below[end] - below[begin]) * top, (*buckets, top))
                       for begin, (tokens, buckets) in fewer.items() if begin < end]
            if options:
                choices[end] = min(options)

        # The other rows have `max_length`, a bucket that is not compiled without rows.
        for end, (tokens, buckets) in choices.items():
            num_compiled = len(buckets) + (has_longest or end < len(candidates))
            padded_tokens = tokens + (below[-1] - below[end]) * max_length
            best = min(best, (padded_tokens + bucket_cost * num_compiled, buckets))
    return (*best[1], max_length)


def plan_epoch(lengths: Sequence[int], batch_size: int, *, seed: int,
               epoch: int) -> list[np.ndarray]:
    """Returns the indices of every batch's examples, in an epoch's shuffled order.

    `lengths` are the numbers of tokens of the examples. One batch may have fewer than B examples.
    """
    # Shuffled examples in pools of 50 batches, each sorted by length; ties stay shuffled.
    rng = np.random.default_rng([seed, epoch])
    pools = _slices(rng.permutation(len(lengths)), _POOL_BATCHES * batch_size)
    sizes = np.asarray(lengths)
    pools = [pool[np.argsort(sizes[pool], kind="stable")] for pool in pools]

    # Batches of neighbours within a pool, in random order.
    batches = [batch for pool in pools for batch in _slices(pool, batch_size)]
    return [batches[index] for index in rng.permutation(len(batches))]


def plan_in_order_of_length(lengths: Sequence[int], batch_size: int) -> list[np.ndarray]:
    """Returns the indices of every batch's examples, longest first to detect a lack of memory."""
    return _slices(np.argsort(-np.asarray(lengths), kind="stable"), batch_size)


def _slices(values: np.ndarray, size: int) -> list[np.ndarray]:
    return [values[begin:begin + size] for begin in range(0, len(values), size)]


def make_batch(rows: Sequence[Row], batch_size: int, lengths: Sequence[int],
               pad_id: int) -> RowBatch:
    """Pads 1 to B examples to the shortest of `lengths` that holds all, and the batch to B.

    Examples with parts get the most parts of all, a multiple of 4 above 4. Rows and parts that are
    added have one valid token: heads read the first, or the mean of the valid ones.
    """
    # The shape of a padded row: [L], or [G, L] with parts.
    longest = max(row.ids.shape[-1] for row in rows)
    shape: tuple[int, ...] = (next(length for length in lengths if length >= longest),)
    if rows[0].ids.ndim > 1:
        parts = max(len(row.ids) for row in rows)
        shape = (parts if parts <= _STEP else -(-parts // _STEP) * _STEP, *shape)

    def padded(values: Sequence[np.ndarray], shape: Sequence[int], fill: int = 0) -> np.ndarray:
        batch = np.full([batch_size, *shape], fill, values[0].dtype)
        for index, value in enumerate(values):
            batch[(index, *map(slice, value.shape))] = value
        return batch

    # bool [B, L] or [B, G, L]; padding rows and parts are False, but for their first token.
    masks = [np.ones(row.ids.shape, bool) if row.padding_mask is None else row.padding_mask
             for row in rows]
    padding_mask = padded(masks, shape)
    padding_mask[..., 0] = True

    # Targets have one shape in all rows; those of words are padded like tokens.
    targets = {name: padded([np.asarray(row.targets[name]) for row in rows], np.shape(value))
               for name, value in rows[0].targets.items()}
    targets |= {name: padded([row.word_targets[name] for row in rows], shape)
                for name in rows[0].word_targets}
    return RowBatch(
        ids=padded([row.ids for row in rows], shape, pad_id), padding_mask=padding_mask,
        segment_ids=padded([row.segment_ids for row in rows], shape),
        present=np.arange(batch_size) < len(rows), targets=targets)
