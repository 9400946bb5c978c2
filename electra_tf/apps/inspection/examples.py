"""Reads single examples and draws their masks as training does (ELECTRA, section 3.1)."""

import dataclasses

import numpy as np
import tensorflow as tf

from electra_tf.apps.inspection.survey import Place, RecordsDirectory
from electra_tf.config.model import MaskingConfig
from electra_tf.data.example import Batch
from electra_tf.modeling.masking import mark_positions, mask_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.pretraining.setup import token_kinds
from electra_tf.text.vocabulary import CONTINUATION

SPLIT_NAMES = {"train": "training", "eval": "held out"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedPiece:
    """One token of an example, with what the generator reads at its position."""

    token: str
    segment: int
    """0 or 1."""
    read: tuple[str | None, ...]
    """What the generator reads in each draw; None where the token is not selected."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedExample:
    """One example without padding, special tokens included, with several draws of masks."""

    place: Place
    pieces: tuple[MaskedPiece, ...]

    @property
    def title(self) -> str:
        """The place and the length of the example."""
        lengths = [sum(piece.segment == segment for piece in self.pieces) for segment in (0, 1)]
        of = f"{lengths[0]} + {lengths[1]}" if lengths[1] else "one segment"
        shard, number = self.place
        return (f"{SPLIT_NAMES[shard.split]}, {shard.name}, example {number:,}: "
                f"{len(self.pieces)} tokens ({of})")

    @property
    def words(self) -> list[list[MaskedPiece]]:
        """The pieces of each word; a word does not cross the border of segments."""
        words: list[list[MaskedPiece]] = []
        for piece in self.pieces:
            continues = piece.token.startswith(CONTINUATION) and piece.token != CONTINUATION
            if words and continues and piece.segment == words[-1][-1].segment:
                words[-1].append(piece)
            else:
                words.append([piece])
        return words


def masked_examples(records: RecordsDirectory, count: int, masking: MaskingConfig, *, seed: int,
                    draws: int) -> list[MaskedExample]:
    """Returns `count` examples with the masks that training would draw for them.

    They are training examples in their order, or held-out ones if there are no others. The seed
    selects the examples and the masks; each of `draws` epochs has its own masks.
    """
    split = "train" if records.examples("train") else "eval"
    number = records.examples(split)
    chosen = np.random.default_rng(seed).choice(number, min(count, number), replace=False)
    places = [records.place(split, int(each)) for each in np.sort(chosen)]
    if not places:
        return []
    batch = Batch(*map(np.concatenate, zip(*map(records.example, places), strict=True)))
    masks = [_mask(records, batch, masking, seed, draw) for draw in range(draws)]
    tokens = records.vocabulary.tokens
    return [MaskedExample(place=place, pieces=tuple(
        MaskedPiece(
            token=tokens[batch.ids[row, column]], segment=int(batch.segment_ids[row, column]),
            read=tuple(tokens[ids[row, column]] if selected[row, column] else None
                       for ids, selected in masks))
        for column in range(np.count_nonzero(batch.valid[row]))))
        for row, place in enumerate(places)]


def _mask(records: RecordsDirectory, batch: Batch, masking: MaskingConfig, seed: int,
          draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns what the generator reads, int32 [B, L], and the predicted positions, bool [B, L]."""
    masked_ids, (positions, _, filled) = mask_tokens(
        tf.constant(batch.ids), tf.constant(batch.valid), masking, token_kinds(records.vocabulary),
        Randomness(seed=seed, step=tf.constant(draw, tf.int64),
                   first_example=tf.constant(0, tf.int64)))
    return masked_ids.numpy(), mark_positions(positions, filled, batch.ids.shape[1]).numpy()
