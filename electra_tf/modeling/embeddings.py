"""Word, position and segment embeddings."""

import tensorflow as tf
import tf_keras

from electra_tf.config.model import EncoderConfig
from electra_tf.modeling import weight_table
from electra_tf.modeling.fused import dropout
from electra_tf.modeling.layers import DifferenceTable, EmbeddingTable, LayerNorm
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
        shapes = weight_table.embeddings(path, config)

        def table(name: str) -> EmbeddingTable:
            return EmbeddingTable(f"{path}/{name}", *shapes[f"{path}/{name}"], seed=seed,
                                  policy=policy, stddev=config.initializer_range)

        self.words = words or table("word_embeddings")
        self.segments = table("token_type_embeddings")
        self.positions = table("position_embeddings")
        self.norm = LayerNorm(f"{path}/LayerNorm", *shapes[f"{path}/LayerNorm/gamma"],
                              policy=policy)

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
