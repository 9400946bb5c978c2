"""Converts batches of token tensors to rows of arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.text.rows import RowEncoder, Tokens

CHUNK = 20_000
"""Texts that are tokenized by one call."""


class TokenRow(NamedTuple):
    """One row, int32 [n] each, without padding."""

    ids: np.ndarray
    segment_ids: np.ndarray


def token_rows(tokens: Tokens) -> list[TokenRow]:
    """Returns the rows of a batch with at least one row."""
    ids, segment_ids, valid = (values.numpy() for values in tokens)
    ends = np.cumsum(valid.sum(axis=1))[:-1]
    return [TokenRow(*row) for row in zip(
        np.split(ids[valid], ends), np.split(segment_ids[valid], ends), strict=True)]


def encode_texts(texts: Sequence[tuple[str, ...]], encoder: RowEncoder) -> list[TokenRow]:
    """Returns a row for each text, or for each pair of texts."""
    rows = []
    for first in range(0, len(texts), CHUNK):
        columns = zip(*texts[first:first + CHUNK], strict=True)
        rows += token_rows(encoder.encode(*(tf.constant(column) for column in columns)))
    return rows
