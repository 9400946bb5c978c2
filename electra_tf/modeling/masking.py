"""Selects positions, hides their tokens, and reads and writes at positions (section 3.1)."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.config.corruption import MaskingConfig
from electra_tf.modeling.rng import Rng, to_uniform


class SpecialTokens(NamedTuple):
    """Ids of the vocabulary's special entries."""

    pad: int
    cls: int
    sep: int
    mask: int


class MaskedPositions(NamedTuple):
    """The selected positions of a batch; some slots may not be filled."""

    positions: tf.Tensor  # int32 [B, N].
    original_ids: tf.Tensor  # int32 [B, N], the tokens to predict.
    filled: tf.Tensor  # bool [B, N].


class VocabInfo(NamedTuple):
    """Kinds of vocabulary entries that masking distinguishes."""

    special: SpecialTokens
    size: int  # V.
    continues_word: np.ndarray
    """bool [V], True for entries that continue a word ("##ing"); for whole-word masking."""


def mask_tokens(ids: tf.Tensor, padding_mask: tf.Tensor, config: MaskingConfig,
                vocab: VocabInfo, rng: Rng) -> tuple[tf.Tensor, MaskedPositions]:
    """Selects positions and replaces most of their tokens by [MASK] or by random tokens.

    `ids` are int32 and `padding_mask` bool [B, L]. Returns the ids that the generator reads, int32
    [B, L], and N = config.max_predictions(L) slots per example.
    """
    batch_size, length = ids.shape
    slots = config.max_predictions(length)
    candidates = maskable(ids, padding_mask, vocab.special)

    # How many positions every row selects, int32 [B], by its number of tokens.
    counts = tf.gather(tf.constant(config.predictions_by_length(length)),
                       tf.reduce_sum(tf.cast(padding_mask, tf.int32), axis=1))

    # The positions, int32 [B, N], of which the first `counts` are filled.
    bits = rng.bits("masking/positions", batch_size, length)
    if config.whole_words:
        # A word that joins the one before is treated as its continuation: both are one span.
        continues = tf.gather(tf.constant(vocab.continues_word), ids)
        if config.joined_words:
            continues |= rng.uniform("masking/spans", batch_size, length) < config.joined_words
        positions, filled = draw_words(candidates, continues, counts, bits, slots)
    elif config.position_draw == "without_replacement":
        positions, filled = draw_distinct(candidates, counts, bits, slots)
    else:
        positions, filled = draw_with_replacement(candidates, counts, to_uniform(bits), slots)
    masked = MaskedPositions(positions, gather_at(ids, positions), filled)

    # One uniform per slot: [MASK] below `mask_token_rate`, then a random token or the original.
    uniform = rng.uniform("masking/hide", batch_size, slots)
    is_masked = uniform < config.mask_token_rate
    mask_ids = tf.fill([batch_size, slots], vocab.special.mask)
    masked_ids = write_tokens(ids, positions, mask_ids, filled & is_masked)
    if config.random_token_rate:
        random = rng.uniform("masking/random", batch_size, slots) * vocab.size
        random = tf.minimum(tf.cast(random, tf.int32), vocab.size - 1)
        randomized = ~is_masked & (uniform < config.mask_token_rate + config.random_token_rate)
        masked_ids = write_tokens(masked_ids, positions, random, filled & randomized)
    return masked_ids, masked


def maskable(ids: tf.Tensor, padding_mask: tf.Tensor, special: SpecialTokens) -> tf.Tensor:
    """Returns bool [B, L], True for tokens other than padding, [CLS], [SEP] and [MASK]."""
    ordinary = (ids != special.cls) & (ids != special.sep) & (ids != special.mask)
    return padding_mask & ordinary & (ids != special.pad)


def draw_distinct(candidates: tf.Tensor, counts: tf.Tensor, bits: tf.Tensor,
                  slots: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws positions without replacement, every subset equally likely.

    Selects the candidates, bool [B, L], with the largest `bits`, uniform int32 [B, L]: as many as
    `counts`, int32 [B], or all. Returns positions int32 [B, N] and filled slots bool [B, N].
    """
    # 31 random bits for a candidate, -1 for others; the largest are drawn first.
    score = tf.where(candidates, tf.bitwise.bitwise_and(bits, 0x7FFFFFFF), -1)
    slots_in_row = min(slots, candidates.shape[1])
    best, positions = tf.math.top_k(score, slots_in_row)
    extra = [[0, 0], [0, slots - slots_in_row]]  # Slots past the row's length are not filled.
    best = tf.pad(best, extra, constant_values=-1)
    filled = (best >= 0) & (tf.range(slots) < counts[:, tf.newaxis])
    return tf.pad(positions, extra), filled


def draw_words(candidates: tf.Tensor, continues: tf.Tensor, counts: tf.Tensor, bits: tf.Tensor,
               slots: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws whole words in random order until `counts` pieces are selected.

    `continues` bool [B, L] marks pieces that continue a word; the rest is as in `draw_distinct`. A
    word with more pieces than may still be selected is skipped, so a row may have fewer positions.
    """
    length = candidates.shape[1]

    # Orders all pieces by the random score of their word's first piece, [B, L].
    first, size = _word_spans(candidates, continues)
    score = tf.where(candidates, tf.bitwise.bitwise_and(gather_at(bits, first), 0x7FFFFFFF), -1)
    # Stable: of two words with the same score the first one comes first, with all its pieces.
    score, order = tf.math.top_k(score, length)
    size, first = gather_at(size, order), gather_at(first, order)
    pieces_after = size - 1 - (order - first)  # Pieces of the same word that follow.

    # Takes words in this order while they fit: a running sum gives each word's end.
    chosen, remaining = tf.zeros_like(candidates), counts[:, tf.newaxis]
    for _ in range(4):  # A word that is too long for the remaining slots is skipped 3 times (BERT).
        fits = (score >= 0) & ~chosen & (size <= remaining)
        end_of_word = tf.cumsum(tf.cast(fits, tf.int32), axis=1) + pieces_after
        added = fits & (end_of_word <= remaining)
        chosen |= added
        remaining -= tf.reduce_sum(tf.cast(added, tf.int32), axis=1, keepdims=True)

    # Moves the chosen pieces to the first slots, [B, N], in the order of drawing.
    slots_in_row = min(slots, length)
    rank, index = tf.math.top_k(tf.where(chosen, length - tf.range(length), 0), slots_in_row)
    extra = [[0, 0], [0, slots - slots_in_row]]
    filled = tf.pad(rank, extra) > 0
    return tf.where(filled, tf.pad(gather_at(order, index), extra), 0), filled


def _word_spans(candidates: tf.Tensor, continues: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns first position and number of pieces of each candidate's word, int32 [B, L]."""
    length = candidates.shape[1]

    # A word begins at a candidate that continues no candidate before it.
    follows = tf.pad(candidates[:, :-1], [[0, 0], [1, 0]])
    begins = candidates & ~(continues & follows)
    word = tf.maximum(tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1, 0)
    # Positions where words begin, in order, padded with L.
    starts = tf.sort(tf.where(begins, tf.range(length), length), axis=1)
    starts = tf.pad(starts, [[0, 0], [0, 1]], constant_values=length)
    pieces_before = tf.pad(tf.cumsum(tf.cast(candidates, tf.int32), axis=1), [[0, 0], [1, 0]])

    # A word's size is the number of candidates from its beginning to the next word's.
    first, following = gather_at(starts, word), gather_at(starts, word + 1)
    size = gather_at(pieces_before, following) - gather_at(pieces_before, first)
    return tf.minimum(first, length - 1), size


def draw_with_replacement(candidates: tf.Tensor, counts: tf.Tensor, uniforms: tf.Tensor,
                          slots: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Draws each slot independently, as in the reference implementation.

    `uniforms` are float32 [B, L] in [0, 1); the rest is as in `draw_distinct`.
    """
    # A rank among the row's candidates, uniform in [0, total), for every slot.
    ranks = tf.cumsum(tf.cast(candidates, tf.int32), axis=1)
    total = ranks[:, -1:]
    chosen = tf.cast(uniforms[:, :slots] * tf.cast(total, tf.float32), tf.int32)
    chosen = tf.minimum(chosen, total - 1)
    # The position of the candidate of rank r is the number of positions with rank <= r.
    before = ranks[:, tf.newaxis, :] <= chosen[:, :, tf.newaxis]
    positions = tf.reduce_sum(tf.cast(before, tf.int32), axis=2)
    filled = (total > 0) & (tf.range(slots) < counts[:, tf.newaxis])
    return tf.where(filled, positions, 0), filled


def write_tokens(ids: tf.Tensor, positions: tf.Tensor, new_ids: tf.Tensor,
                 filled: tf.Tensor) -> tf.Tensor:
    """Replaces tokens of `ids` int32 [B, L] by `new_ids` at the positions of filled slots, [B, N].

    If several filled slots have one position (drawn with replacement), it gets the mean of their
    ids, rounded down, as in the reference implementation.
    """
    # int32 [B, N, L]; sums over slots give each position's number of writes and sum of ids.
    hits = tf.cast(_hits(positions, filled, ids.shape[1]), tf.int32)
    counts = tf.reduce_sum(hits, axis=1)
    sums = tf.reduce_sum(hits * new_ids[:, :, tf.newaxis], axis=1)
    return tf.where(counts > 0, sums // tf.maximum(counts, 1), ids)


def mark_positions(positions: tf.Tensor, filled: tf.Tensor, length: int) -> tf.Tensor:
    """Returns bool [B, L], True at `positions`, int32 [B, N], of the slots that are `filled`."""
    return tf.reduce_any(_hits(positions, filled, length), axis=1)


def _hits(positions: tf.Tensor, filled: tf.Tensor, length: int) -> tf.Tensor:
    """Returns bool [B, N, L], True where a filled slot has a position."""
    # Slots that aren't filled have position -1, which equals none.
    targets = tf.where(filled, positions, -1)
    return targets[:, :, tf.newaxis] == tf.range(length)


def gather_at(values: tf.Tensor, positions: tf.Tensor) -> tf.Tensor:
    """Returns the entries [B, N, ...] of `values` [B, L, ...] at `positions`, int32 [B, N]."""
    return tf.gather(values, positions, batch_dims=1)
