"""Counts all examples of a directory of records, and masks some of them as training does."""

import bisect
import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from electra_tf.config.corruption import MaskingConfig
from electra_tf.data import pipeline
from electra_tf.data.example import Batch
from electra_tf.data.manifest import VOCABULARY_NAME, Manifest, load, verify_shards
from electra_tf.data.records import SPLITS, Records, Shard
from electra_tf.data.shards import serialized_examples
from electra_tf.modeling.masking import mark_positions, mask_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path
from electra_tf.pretraining.setup import token_kinds
from electra_tf.text.vocabulary import CONTINUATION, Vocabulary

SPLIT_NAMES = {"train": "training", "eval": "held out"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitCounts:
    """Counts over the examples of "train" or "eval"."""

    lengths: np.ndarray  # int64 [L + 1]: examples of each number of tokens.
    pieces: np.ndarray  # int64 [V]: frequency of each piece.
    hashes: np.ndarray  # int64 [examples], equal for examples of equal tokens.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """The counts over a directory of records."""

    data_dir: Path
    manifest: Manifest
    vocabulary: Vocabulary
    splits: dict[str, SplitCounts]  # By "train" and "eval".
    copies: int  # Training examples that are equal to an earlier one.
    leaked: int  # Held-out examples that are also training examples.

    @property
    def pieces(self) -> np.ndarray:
        """int64 [V]: frequency of each piece in all examples."""
        return sum(counts.pieces for counts in self.splits.values())


def take_survey(data_dir: Path) -> Survey:
    """Counts all examples of a directory; memory holds a hash of 8 bytes for each.

    An unfinished build, a missing or different vocabulary, and a missing or damaged shard are
    refused with a `UserError`.
    """
    manifest, path = load(data_dir), data_dir / VOCABULARY_NAME
    vocabulary = Vocabulary.load(path)
    if vocabulary.sha256 != manifest.vocabulary.sha256:
        raise UserError(f"{path} isn't the vocabulary of these records: it has {vocabulary.size:,} "
                        f"pieces instead of {manifest.vocabulary.size:,}; restore the file, or "
                        "build the records again.")
    verify_shards(data_dir, manifest, checksums=False)
    splits = {}
    for split in SPLITS:
        lengths = np.zeros(manifest.max_seq_length + 1, np.int64)
        pieces, hashes = np.zeros(vocabulary.size, np.int64), [np.zeros(0, np.int64)]
        for shard in manifest.shards_of(split):
            for ids, valid, _ in _read(manifest.records(data_dir), shard, vocabulary.pad_id):
                lengths += np.bincount(np.count_nonzero(valid, axis=1), minlength=lengths.size)
                pieces += np.bincount(ids[valid], minlength=pieces.size)
                hashes.append(np.array([hash(row.tobytes()) for row in ids]))
        splits[split] = SplitCounts(lengths=lengths, pieces=pieces, hashes=np.concatenate(hashes))
    train, held_out = (splits[split].hashes for split in SPLITS)
    return Survey(data_dir=data_dir, manifest=manifest, vocabulary=vocabulary, splits=splits,
                  copies=train.size - np.unique(train).size,
                  leaked=int(np.isin(held_out, train).sum()))


def _read(records: Records, shard: Shard, pad_id: int, start: int = 0,
          stop: int | None = None) -> Iterator[Batch]:
    """Yields examples [start, stop) of a shard in order; `UserError` for a damaged shard."""
    for serialized in serialized_examples(records, shard, start=start, stop=stop):
        parsed = pipeline.parse_examples(serialized, records, pad_id)
        yield Batch(*(part.numpy() for part in parsed))


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedPiece:
    """One token of an example, with what the generator reads at its position."""

    token: str
    segment: int  # 0 or 1.
    read: tuple[str | None, ...]  # By draw; None where the token is not selected.


@dataclasses.dataclass(frozen=True, kw_only=True)
class MaskedExample:
    """One example without padding, special tokens included, with several draws of masks."""

    shard: Shard
    number: int  # Within its shard, from 0.
    pieces: tuple[MaskedPiece, ...]

    @property
    def title(self) -> str:
        """The position of the example in the records, and its length."""
        first, second = (sum(piece.segment == segment for piece in self.pieces)
                         for segment in (0, 1))
        return (f"{SPLIT_NAMES[self.shard.split]}, {self.shard.name}, example {self.number:,}: "
                f"{first + second} tokens ({f'{first} + {second}' if second else 'one segment'})")

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


def masked_examples(survey: Survey, count: int, masking: MaskingConfig, *, seed: int,
                    draws: int) -> list[MaskedExample]:
    """Returns `count` examples with the masks that training would draw for them.

    They are training examples in their order, or held-out ones if there are no others. The seed
    selects the examples and the masks; each of `draws` epochs has its own masks.
    """
    manifest, vocabulary = survey.manifest, survey.vocabulary
    shards = manifest.shards_of("train" if manifest.examples("train") else "eval")
    ends = list(itertools.accumulate(shard.examples for shard in shards))
    total = ends[-1] if ends else 0
    chosen = np.sort(np.random.default_rng(seed).choice(total, min(count, total), replace=False))
    examples = [(shards[index], int(number - ends[index] + shards[index].examples))
                for number in chosen for index in [bisect.bisect_right(ends, number)]]
    if not examples:
        return []
    records = manifest.records(survey.data_dir)
    ids, valid, segments = map(np.concatenate, zip(
        *(next(_read(records, shard, vocabulary.pad_id, number, number + 1))
          for shard, number in examples), strict=True))
    masks = []
    for draw in range(draws):
        masked_ids, (positions, _, filled) = mask_tokens(
            tf.constant(ids), tf.constant(valid), masking, token_kinds(vocabulary),
            Randomness(seed=seed, step=tf.constant(draw, tf.int64),
                       first_example=tf.constant(0, tf.int64)))
        selected = mark_positions(positions, filled, ids.shape[1])
        masks.append((masked_ids.numpy(), selected.numpy()))
    tokens = vocabulary.tokens
    return [MaskedExample(shard=shard, number=number, pieces=tuple(
        MaskedPiece(token=tokens[ids[row, column]], segment=int(segments[row, column]), read=tuple(
            tokens[masked_ids[row, column]] if selected[row, column] else None
            for masked_ids, selected in masks))
        for column in range(np.count_nonzero(valid[row]))))
        for row, (shard, number) in enumerate(examples)]
