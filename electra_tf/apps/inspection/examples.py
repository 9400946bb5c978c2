"""Some examples as they are stored, and what masking does to them (ELECTRA, section 3.1)."""

import dataclasses

import numpy as np
import tensorflow as tf

from electra_tf.apps.inspection.reading import Place, Rows
from electra_tf.apps.inspection.survey import Survey
from electra_tf.config.model import MaskingConfig
from electra_tf.modeling.masking import mark_positions, mask_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.pretraining.setup import token_kinds
from electra_tf.text.vocabulary import CONTINUATION

SPLIT_NAMES = {"train": "training", "eval": "held out"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Piece:
    """One token of an example."""

    token: str
    segment: int
    """0 or 1."""
    read: tuple[str | None, ...]
    """What the generator reads in each draw; None where the token is not selected."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedExample:
    """One example without padding, special tokens included, with several draws of masks."""

    place: Place
    split: str
    pieces: tuple[Piece, ...]

    @property
    def title(self) -> str:
        """Where the example is stored, and its length."""
        lengths = [sum(piece.segment == segment for piece in self.pieces) for segment in (0, 1)]
        of = f"{lengths[0]} + {lengths[1]}" if lengths[1] else "one segment"
        return (f"{SPLIT_NAMES[self.split]}, {self.place.shard.name}, example "
                f"{self.place.number:,}: {len(self.pieces)} tokens ({of})")

    @property
    def words(self) -> list[list[Piece]]:
        """The pieces of each word; a word does not cross the border of segments."""
        words: list[list[Piece]] = []
        for piece in self.pieces:
            continues = piece.token.startswith(CONTINUATION) and piece.token != CONTINUATION
            if words and continues and piece.segment == words[-1][-1].segment:
                words[-1].append(piece)
            else:
                words.append([piece])
        return words


def masked_examples(found: Survey, count: int, masking: MaskingConfig, *, seed: int,
                    draws: int) -> list[MaskedExample]:
    """Returns examples with the masks that training would draw for them in `draws` epochs.

    They are drawn from the training examples, or from the held-out ones if there are no others, and
    come in order.

    Args:
        found: the records.
        count: number of examples.
        masking: the run's settings.
        seed: decides which examples and which masks.
        draws: number of draws.
    """
    split = "train" if found.splits["train"].examples else "eval"
    read = found.splits[split].examples
    numbers = np.random.default_rng(seed).choice(read, min(count, read), replace=False)
    places = [found.records.place(split, int(number)) for number in np.sort(numbers)]
    if not places:
        return []
    rows = [found.records.example(place)[1:] for place in places]
    whole = Rows(0, *map(np.concatenate, zip(*rows, strict=True)))
    masks = [_mask(found, whole, masking, seed, draw) for draw in range(draws)]
    tokens = found.records.vocabulary.tokens
    return [MaskedExample(place=place, split=split, pieces=tuple(
        Piece(token=tokens[whole.ids[row, column]], segment=int(whole.segment_ids[row, column]),
              read=tuple(tokens[ids[row, column]] if selected[row, column] else None
                         for ids, selected in masks))
        for column in range(np.count_nonzero(whole.valid[row]))))
        for row, place in enumerate(places)]


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
