"""Fixed-noise evaluation: corruptions of held-out text that are equal in every run.

A discriminator's scores against its own generator fall when the generator learns. These
replacements come from counts over the training records: by token frequency (unigram), and by
frequency after the previous token (bigram). Positions and draws are a function of the example's
tokens, independent of the run's seed and devices.
"""

import dataclasses
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.manifest import Records
from electra_tf.data.pipeline import first_examples
from electra_tf.modeling.corruption import Corrupted
from electra_tf.modeling.masking import SpecialTokens, maskable

RATE = 0.15
"""Fraction of the tokens that are drawn anew, without special tokens."""
KINDS = ("unigram", "bigram")
COUNTED_EXAMPLES = 1 << 16
"""Number of training examples to count: 8 million tokens at L = 128."""


def token_counts(records: Records, special: SpecialTokens) -> np.ndarray:
    """Returns the count of every token in `COUNTED_EXAMPLES`, int64 [V], 0 for special tokens."""
    _, tokens = token_pairs(records, special)
    return np.bincount(tokens, minlength=records.manifest.vocabulary.size)


def token_pairs(records: Records, special: SpecialTokens) -> tuple[np.ndarray, np.ndarray]:
    """Returns the previous token, int32 [T], and the token, int32 [T], of all counted tokens."""
    before, tokens = [], []
    for ids, valid, _ in first_examples(
            records, COUNTED_EXAMPLES, special.pad).as_numpy_iterator():
        counted = np.asarray(maskable(ids, valid, special))[:, 1:]
        before.append(ids[:, :-1][counted])
        tokens.append(ids[:, 1:][counted])
    return np.concatenate(before), np.concatenate(tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Successors:
    """Counts of the tokens that follow each of C contexts, for drawing."""

    starts: tf.Tensor
    """int64 [C + 1]; the successors of context c are numbers starts[c] to starts[c + 1]."""
    tokens: tf.Tensor
    """int32 [K]."""
    ends: tf.Tensor
    """int64 [K], cumulative sum of their counts."""

    @classmethod
    def of(cls, contexts: np.ndarray, tokens: np.ndarray, *, num_contexts: int,
           vocab_size: int) -> "Successors":
        """Counts pairs of a context below `num_contexts`, int [T], and the token after it."""
        pairs, counts = np.unique(
            contexts.astype(np.int64) * vocab_size + tokens, return_counts=True)
        starts = np.searchsorted(pairs, np.arange(num_contexts + 1) * np.int64(vocab_size))
        return cls(starts=tf.constant(starts, tf.int64),
                   tokens=tf.constant(pairs % vocab_size, tf.int32),
                   ends=tf.constant(np.cumsum(counts), tf.int64))

    def draw(self, contexts: tf.Tensor, uniforms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Draws a successor of every context, int32 [M], by uniforms, float32 [M] in [0, 1).

        Returns:
            int32 [M], and bool [M], False for a context without successors.
        """
        ends = tf.concat([tf.zeros([1], tf.int64), self.ends], axis=0)
        first = tf.gather(ends, tf.gather(self.starts, contexts))
        last = tf.gather(ends, tf.gather(self.starts, contexts + 1))
        wanted = tf.cast(tf.cast(uniforms, tf.float64) * tf.cast(last - first, tf.float64),
                         tf.int64)
        index = tf.searchsorted(self.ends, first + wanted, side="right")
        index = tf.minimum(index, tf.size(self.tokens) - 1)
        return tf.gather(self.tokens, index), last > first


@dataclasses.dataclass(frozen=True, kw_only=True)
class FixedCorruption:
    """A corruption of batches by counts of the records."""

    unigram: Successors
    """Successors of the only context, 0."""
    bigram: Successors
    """Successors of every token."""
    special: SpecialTokens

    @classmethod
    def of_records(cls, records: Records, special: SpecialTokens) -> "FixedCorruption":
        """Counts tokens and pairs of the training records (`token_pairs`)."""
        contexts, tokens = token_pairs(records, special)
        size = records.manifest.vocabulary.size
        return cls(
            unigram=Successors.of(np.zeros_like(tokens), tokens, num_contexts=1, vocab_size=size),
            bigram=Successors.of(contexts, tokens, num_contexts=size, vocab_size=size),
            special=special)

    def __call__(self, batch: Batch) -> Mapping[str, Corrupted]:
        """Returns each kind's corruption of a batch; for `tf.data`, not for accelerators."""
        chosen, uniforms = _draws(batch.ids)
        candidates = (chosen < RATE) & maskable(batch.ids, batch.valid, self.special)
        shape = tf.shape(batch.ids)
        before = tf.reshape(tf.pad(batch.ids, [[0, 0], [1, 0]])[:, :-1], [-1])
        flat = tf.reshape(uniforms, [-1])
        common, _ = self.unigram.draw(tf.zeros_like(before), flat)
        following, seen = self.bigram.draw(before, flat)
        draws = {"unigram": common, "bigram": tf.where(seen, following, common)}
        return {kind: _written(batch, candidates, tf.reshape(draw, shape))
                for kind, draw in draws.items()}


def _written(batch: Batch, chosen: tf.Tensor, drawn: tf.Tensor) -> Corrupted:
    ids = tf.where(chosen, drawn, batch.ids)
    return Corrupted(tf.ensure_shape(ids, batch.ids.shape),
                     tf.ensure_shape(ids != batch.ids, batch.ids.shape))


def _draws(ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns two float32 [B, L] in [0, 1), a function of each row's tokens alone."""
    length = tf.shape(ids)[1]
    # A factor per position; sums of 32 bits wrap around.
    factors = tf.range(length) * -1640531535 + 1
    keys = tf.reduce_sum(ids * factors, axis=1)

    def row(key: tf.Tensor) -> tf.Tensor:
        return tf.random.stateless_uniform([2, length], seed=tf.stack([key, 0]))

    drawn = tf.map_fn(row, keys, fn_output_signature=tf.float32)
    return drawn[:, 0], drawn[:, 1]
