"""Word, position and segment embeddings, and the projection to an encoder's width."""

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling.fused import dropout
from electra_tf.modeling.layers import Dense, DifferenceTable, EmbeddingTable, LayerNorm
from electra_tf.modeling.randomness import Randomness, dropout_keys
from electra_tf.modeling.shapes import dimensions


class Embeddings(tf_keras.layers.Layer):
    """Sum of word, position and segment vectors, then layer norm and dropout.

    The generator and the discriminator share the whole layer or, with only the token embeddings
    tied, one `EmbeddingTable` of words (ELECTRA, section 3.2).
    """

    def __init__(self, path: str, config: EncoderConfig, *, seed: int, policy: str,
                 words: EmbeddingTable | DifferenceTable | None = None):
        """Creates the tables; `words` is used instead of a new word table when given."""
        super().__init__(name=path, dtype=policy)
        self.dropout_rate = config.hidden_dropout
        size = config.embedding_size

        def table(name: str, entries: int) -> EmbeddingTable:
            return EmbeddingTable(f"{path}/{name}", entries, size, seed=seed, policy=policy,
                                  stddev=config.initializer_range)

        self.words = words or table("word_embeddings", config.vocab_size)
        self.segments = table("token_type_embeddings", config.type_vocab_size)
        self.positions = table("position_embeddings", config.max_position_embeddings)
        self.norm = LayerNorm(f"{path}/LayerNorm", size, policy=policy)

    def call(self, ids: tf.Tensor, segment_ids: tf.Tensor,
             randomness: Randomness | None) -> tf.Tensor:
        """Embeds tokens.

        Args:
            ids: int32 [B, L].
            segment_ids: int32 [B, L], 0 or 1.
            randomness: None outside of training.

        Returns:
            [B, L, E] of the compute type.
        """
        length = dimensions(ids)[1]
        # A matrix product instead of a second lookup: its gradient sums rows without a scatter.
        segments = tf.one_hot(segment_ids, self.segments.table.shape[0], dtype=tf.float32)
        vectors = (self.words(ids) + self.positions.table[:length]
                   + tf.linalg.matmul(segments, self.segments.table))
        keys = dropout_keys(randomness, self.name, ids.shape[0])
        return dropout(self.norm(vectors), self.dropout_rate, keys)


def projection(path: str, config: EncoderConfig, embedding_size: int, *, seed: int,
               policy: str) -> Dense | None:
    """Returns the dense layer from embedding to hidden size, None where they are equal."""
    if embedding_size == config.hidden_size:
        return None
    return Dense(f"{path}/embeddings_project", embedding_size, config.hidden_size,
                 seed=seed, policy=policy)
