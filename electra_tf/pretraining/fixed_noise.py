"""Fixed-noise evaluation: corruptions of held-out text that are equal in every run.

A discriminator's scores against its own generator fall when the generator learns. These
replacements follow counts over the training records: by token (unigram), and by token after the
previous one (bigram). Positions and draws are a function of the example's tokens alone.
"""

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.data.records import Records
from electra_tf.data.shards import first_examples
from electra_tf.modeling.corruption import Corrupted
from electra_tf.modeling.masking import SpecialTokens, maskable

RATE = 0.15  # Fraction of the tokens, without special tokens, for which another is drawn.
KINDS = ("unigram", "bigram")
COUNTED_EXAMPLES = 1 << 16  # Number of training examples to count: 8 million tokens at L = 128.


def token_counts(records: Records, special: SpecialTokens) -> np.ndarray:
    """Returns the count of every token in `COUNTED_EXAMPLES`, int64 [V], 0 for special tokens."""
    _, tokens = _token_pairs(records, special)
    return np.bincount(tokens, minlength=records.vocab_size)


def _token_pairs(records: Records, special: SpecialTokens) -> tuple[np.ndarray, np.ndarray]:
    """Returns the previous token, int32 [T], and the token, int32 [T], of all counted tokens."""
    # Examples end to end: each begins with [CLS], which isn't counted and precedes its first token.
    ids = np.concatenate([*first_examples(records, COUNTED_EXAMPLES)]).astype(np.int32)
    counted = maskable(ids[1:], np.ones(ids.size - 1, bool), special)
    return ids[:-1][counted], ids[1:][counted]


class Successors:
    """Counts of the tokens that follow each of C contexts, for drawing."""

    def __init__(self, contexts: np.ndarray, tokens: np.ndarray, *, num_contexts: int,
                 vocab_size: int):
        """Counts pairs of a context below `num_contexts`, int [T], and the token after it."""
        # A pair (context, token) is the number context * V + token; np.unique sorts by context.
        pairs, counts = np.unique(
            contexts.astype(np.int64) * vocab_size + tokens, return_counts=True)

        # Successors of context c are the pairs from starts[c] to starts[c + 1].
        starts = np.searchsorted(pairs, np.arange(num_contexts + 1) * np.int64(vocab_size))

        # Running sums of counts over all pairs; those of context c are in [bounds[c],
        # bounds[c + 1]).
        self._tokens = tf.constant(pairs % vocab_size, tf.int32)
        self._ends = tf.constant(np.cumsum(counts), tf.int64)
        self._bounds = tf.constant(np.concatenate([[0], np.cumsum(counts)])[starts], tf.int64)

    def draw(self, contexts: tf.Tensor, uniforms: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Draws a successor, int32 [M], of every context by uniforms, float32 [M] in [0, 1).

        Returns also bool [M], False for a context without successors.
        """
        # A uniform selects one of the context's occurrences, and the running sums its token.
        first, last = tf.gather(self._bounds, contexts), tf.gather(self._bounds, contexts + 1)
        offset = tf.cast(tf.cast(uniforms, tf.float64) * tf.cast(last - first, tf.float64),
                         tf.int64)
        index = tf.searchsorted(self._ends, first + offset, side="right")
        index = tf.minimum(index, tf.size(self._tokens) - 1)
        return tf.gather(self._tokens, index), last > first


def fixed_noise(records: Records, special: SpecialTokens
                ) -> Callable[[Batch], Mapping[str, Corrupted]]:
    """Returns a function that corrupts a batch in each of `KINDS`; for `tf.data`.

    It counts tokens of the records, which are unigram successors of a single context, and pairs of
    tokens.
    """
    previous, tokens = _token_pairs(records, special)
    size = records.vocab_size
    unigram = Successors(np.zeros_like(tokens), tokens, num_contexts=1, vocab_size=size)
    bigram = Successors(previous, tokens, num_contexts=size, vocab_size=size)

    def corrupt(batch: Batch) -> Mapping[str, Corrupted]:
        # Random numbers are a function of each row's tokens alone: the seed is a sum with a factor
        # per position, whose 32 bits wrap around.
        length = tf.shape(batch.ids)[1]
        keys = tf.reduce_sum(batch.ids * (tf.range(length) * -1640531535 + 1), axis=1)
        draws = tf.map_fn(
            lambda key: tf.random.stateless_uniform([2, length], seed=tf.stack([key, 0])),
            keys, fn_output_signature=tf.float32)

        # The positions, bool [B, L], and a draw for each of them by both kinds of counts.
        chosen, uniforms = draws[:, 0], draws[:, 1]
        candidates = (chosen < RATE) & maskable(batch.ids, batch.padding_mask, special)
        before = tf.reshape(tf.pad(batch.ids, [[0, 0], [1, 0]])[:, :-1], [-1])
        flat = tf.reshape(uniforms, [-1])
        common, _ = unigram.draw(tf.zeros_like(before), flat)
        following, seen = bigram.draw(before, flat)

        # Other positions keep their tokens. A pair that was never seen draws by token alone.
        corrupted = {}
        for kind, drawn in zip(KINDS, (common, tf.where(seen, following, common)), strict=True):
            ids = tf.where(candidates, tf.reshape(drawn, tf.shape(batch.ids)), batch.ids)
            corrupted[kind] = Corrupted(tf.ensure_shape(ids, batch.ids.shape),
                                        tf.ensure_shape(ids != batch.ids, batch.ids.shape))
        return corrupted

    return corrupt
