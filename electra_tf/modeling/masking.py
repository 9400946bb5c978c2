"""Which positions the generator has to fill, and what it reads there (ELECTRA, section 3.1)."""

from typing import NamedTuple

import tensorflow as tf

from electra_tf.config.pretraining import MaskingConfig, PositionDraw
from electra_tf.modeling.corruption import gather_tokens, write_tokens
from electra_tf.modeling.randomness import Randomness, to_uniform


class SpecialTokens(NamedTuple):
    """Ids of the vocabulary's special entries."""

    pad: int
    cls: int
    sep: int
    mask: int


class Predictions(NamedTuple):
    """The masked positions of a batch; slots that an example doesn't fill aren't valid."""

    positions: tf.Tensor
    """int32 [B, N]."""
    original_ids: tf.Tensor
    """int32 [B, N], the tokens to be found."""
    valid: tf.Tensor
    """bool [B, N]."""


class Masked(NamedTuple):
    """A batch as the generator reads it, and what it has to predict."""

    ids: tf.Tensor
    """int32 [B, L]."""
    predictions: Predictions


def mask_tokens(ids: tf.Tensor, valid: tf.Tensor, config: MaskingConfig,
                special: SpecialTokens, randomness: Randomness) -> Masked:
    """Selects positions and hides most of them behind [MASK].

    Args:
        ids: int32 [B, L].
        valid: bool [B, L], False on padding.
        config: rate of positions, share of [MASK], way of drawing.
        special: ids that are never selected.
        randomness: place of the draw.

    Returns:
        `Masked` with N = config.max_predictions(L) slots per example.
    """
    batch_size, length = ids.shape
    slots = config.max_predictions(length)
    candidates = maskable(ids, valid, special)
    wanted = number_to_predict(valid, config)
    bits = randomness.bits("masking/positions", batch_size, length)
    if config.position_draw is PositionDraw.WITHOUT_REPLACEMENT:
        positions, filled = draw_distinct(candidates, wanted, bits, slots)
    else:
        positions, filled = draw_with_replacement(candidates, wanted, to_uniform(bits), slots)
    hide = randomness.uniform("masking/hide", batch_size, slots) < config.mask_token_rate
    predictions = Predictions(positions, gather_tokens(ids, positions), filled)
    mask_ids = tf.fill([batch_size, slots], special.mask)
    return Masked(write_tokens(ids, positions, mask_ids, filled & hide), predictions)


def maskable(ids: tf.Tensor, valid: tf.Tensor, special: SpecialTokens) -> tf.Tensor:
    """Returns bool [B, L]: tokens other than padding, [CLS], [SEP] and [MASK]."""
    ordinary = (ids != special.cls) & (ids != special.sep) & (ids != special.mask)
    return valid & ordinary & (ids != special.pad)


def number_to_predict(valid: tf.Tensor, config: MaskingConfig) -> tf.Tensor:
    """Returns int32 [B], how many positions to select by the number of tokens of each row."""
    table = tf.constant(config.predictions_by_length(valid.shape[1]))
    return tf.gather(table, tf.reduce_sum(tf.cast(valid, tf.int32), axis=1))


def draw_distinct(candidates: tf.Tensor, wanted: tf.Tensor, bits: tf.Tensor,
                  slots: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws positions without replacement, every subset equally likely.

    The positions with the largest random words win; a position that isn't a candidate has none.

    Args:
        candidates: bool [B, L].
        wanted: int32 [B].
        bits: int32 [B, L], uniform.
        slots: N.

    Returns:
        positions int32 [B, N] and bool [B, N], which slots are filled: min(wanted, candidates).
    """
    score = tf.where(candidates, tf.bitwise.bitwise_and(bits, 0x7FFFFFFF), -1)
    slots_in_row = min(slots, candidates.shape[1])
    best, positions = tf.math.top_k(score, slots_in_row)
    extra = [[0, 0], [0, slots - slots_in_row]]
    best = tf.pad(best, extra, constant_values=-1)
    filled = (best >= 0) & (tf.range(slots) < wanted[:, tf.newaxis])
    return tf.pad(positions, extra), filled


def draw_with_replacement(candidates: tf.Tensor, wanted: tf.Tensor, uniforms: tf.Tensor,
                          slots: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws each slot independently and uniformly: the reference's flaw, for comparison.

    Args:
        candidates: bool [B, L].
        wanted: int32 [B].
        uniforms: float32 [B, L] in [0, 1), the first N columns are used.
        slots: N.

    Returns:
        As `draw_distinct`, but positions may repeat.
    """
    ranks = tf.cumsum(tf.cast(candidates, tf.int32), axis=1)
    total = ranks[:, -1:]
    chosen = tf.cast(uniforms[:, :slots] * tf.cast(total, tf.float32), tf.int32)
    chosen = tf.minimum(chosen, total - 1)
    # The position of the candidate of rank r is the number of positions with rank <= r.
    before = ranks[:, tf.newaxis, :] <= chosen[:, :, tf.newaxis]
    positions = tf.reduce_sum(tf.cast(before, tf.int32), axis=2)
    filled = (total > 0) & (tf.range(slots) < wanted[:, tf.newaxis])
    return tf.where(filled, positions, 0), filled
