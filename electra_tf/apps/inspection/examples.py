"""Some examples as they are stored, and what masking does to them (ELECTRA, section 3.1)."""

import dataclasses

import numpy as np
import tensorflow as tf

from electra_tf.apps.inspection.reading import Place, Rows
from electra_tf.apps.inspection.survey import Survey
from electra_tf.config.masking import MaskingConfig
from electra_tf.modeling.corruption import mark_positions
from electra_tf.modeling.masking import mask_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.pretraining.setup import token_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedExample:
    """One example without padding, n tokens, and D draws of masks."""

    place: Place
    split: str
    tokens: tuple[str, ...]
    """Pieces, special tokens among them."""
    segments: np.ndarray
    """int [n], 0 or 1."""
    selected: np.ndarray
    """bool [D, n]: what the generator has to predict."""
    read: tuple[tuple[str, ...], ...]
    """D times n pieces: what the generator reads."""


def choose(found: Survey, count: int, seed: int) -> list[tuple[str, Place]]:
    """Returns split and place of `count` training examples, or held-out ones if there are none.

    They are drawn from those that are read, in order.
    """
    split = "train" if found.splits["train"].examples else "eval"
    read = found.splits[split].examples
    numbers = np.random.default_rng(seed).choice(read, min(count, read), replace=False)
    return [(split, found.records.place(split, int(number), found.limit))
            for number in np.sort(numbers)]


def masked_examples(found: Survey, count: int, masking: MaskingConfig, *, seed: int,
                    draws: int) -> list[MaskedExample]:
    """Returns examples with the masks that training would draw for them, as of `draws` epochs.

    Args:
        found: the records.
        count: number of examples.
        masking: the run's settings.
        seed: decides which examples and which masks.
        draws: D.
    """
    chosen = choose(found, count, seed)
    if not chosen:
        return []
    rows = [found.records.example(place) for _, place in chosen]
    whole = Rows(0, *(np.concatenate(parts) for parts in zip(
        *(row[1:] for row in rows), strict=True)))
    masks = [_mask(found, whole, masking, seed, draw) for draw in range(draws)]
    tokens = found.records.vocabulary.tokens
    result = []
    for index, (split, place) in enumerate(chosen):
        length = int(np.count_nonzero(whole.valid[index]))
        result.append(MaskedExample(
            place=place, split=split, segments=whole.segment_ids[index, :length],
            tokens=tuple(tokens[each] for each in whole.ids[index, :length]),
            selected=np.array([selected[index, :length] for _, selected in masks]),
            read=tuple(tuple(tokens[each] for each in ids[index, :length]) for ids, _ in masks)))
    return result


def _mask(found: Survey, rows: Rows, masking: MaskingConfig, seed: int,
          draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns what the generator reads, int32 [B, L], and which positions it predicts."""
    masked = mask_tokens(
        tf.constant(rows.ids), tf.constant(rows.valid), masking,
        token_kinds(found.records.vocabulary),
        Randomness(seed=seed, step=tf.constant(draw, tf.int64),
                   first_example=tf.constant(0, tf.int64)))
    positions, _, filled = masked.predictions
    return masked.ids.numpy(), mark_positions(positions, filled, rows.ids.shape[1]).numpy()
