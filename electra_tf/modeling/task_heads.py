"""The model of fine-tuning and its heads (ELECTRA, section 3.3 and appendix B; XLNet for QA).

Unlike BERT, it has no pooler: a dense layer reads the last hidden vectors. Heads compute in float32
in every policy: bfloat16 would round a score of 4 to 8 to a multiple of 1/32.
"""

from typing import NamedTuple

import tensorflow as tf
import tf_keras

from electra_tf.config.model import ModelConfig
from electra_tf.modeling.encoder import create_encoder
from electra_tf.modeling.fused import dimensions, dropout, gelu
from electra_tf.modeling.layers import Dense, GeluDense, LayerOptions, NormedGeluDense
from electra_tf.modeling.rng import Rng, dropout_keys

QUESTION_HIDDEN = 512  # Units of the hidden layers of `QuestionHead`, for encoders of all sizes.
FORBIDDEN = -1000.0
"""Bias of the logit of a position where no answer may begin or end, as in the reference."""


class TaskNetwork(tf_keras.Model):
    """The pre-trained encoder and the head of a task (section 3.3)."""

    def __init__(self, config: ModelConfig, head: tf_keras.layers.Layer, *, seed: int,
                 policy: str = "float32", recompute: bool = False):
        """Creates the encoder; the other arguments are those of `LayerOptions`."""
        super().__init__(name="task_model", dtype=policy)
        options = LayerOptions(seed=seed, policy=policy, recompute=recompute)
        self.encoder = create_encoder(config.discriminator, options)
        self.head = head


class ScoreHead(tf_keras.layers.Layer):
    """A head of dropout and a dense layer, for classification, regression and tagging.

    With `hidden_layer` dropout and a dense layer with GELU come first, as in Hugging Face's
    classification head; with `modern` it is that of ModernBERT's heads.
    """

    def __init__(self, path: str, hidden_size: int, outputs: int, *, dropout_rate: float, seed: int,
                 hidden_layer: bool = False, modern: bool = False):
        super().__init__(name=path, dtype="float32")
        self.dropout_rate = dropout_rate
        options = LayerOptions(seed=seed)
        kind = NormedGeluDense if modern else GeluDense
        self.hidden = (kind(f"{path}/hidden", hidden_size, hidden_size, options)
                       if hidden_layer else None)
        self.dense = Dense(f"{path}/dense", hidden_size, outputs, options)

    def call(self, vectors: tf.Tensor, rng: Rng | None = None) -> tf.Tensor:
        """Maps [B, ..., H] to logits, float32 [B, ..., outputs]; `rng` is for dropout."""
        vectors = tf.cast(vectors, tf.float32)
        if self.hidden is not None:
            vectors = self.hidden(self._dropped(vectors, "hidden_dropout", rng))
        return self.dense(self._dropped(vectors, "dropout", rng))

    def _dropped(self, vectors: tf.Tensor, stream: str, rng: Rng | None) -> tf.Tensor:
        keys = dropout_keys(rng, f"{self.name}/{stream}", vectors.shape[0])
        return dropout(vectors, self.dropout_rate, keys)


def answer_positions(segment_ids: tf.Tensor, padding_mask: tf.Tensor) -> tf.Tensor:
    """Marks positions where an answer may begin or end, bool [B, L]; [CLS] is for "no answer".

    `segment_ids` int32 [B, L] are above 0 in the context, `padding_mask` is bool [B, L].
    """
    allowed = padding_mask & (segment_ids > 0)
    return allowed | (tf.range(dimensions(allowed)[1]) == 0)


class SpanLogits(NamedTuple):
    """The float32 logits of a training step."""

    start: tf.Tensor  # [B, L].
    end: tf.Tensor  # [B, L]; given the true start if ends depend on starts.
    impossible: tf.Tensor | None  # [B], positive where the context seems to hold no answer.


class SpanBeams(NamedTuple):
    """The most probable answers: K starts, and K ends for each of them."""

    start_log_probs: tf.Tensor  # float32 [B, K].
    start_index: tf.Tensor  # int32 [B, K].
    end_log_probs: tf.Tensor  # float32 [B, K, K].
    end_index: tf.Tensor  # int32 [B, K, K].
    impossible: tf.Tensor | None  # As in `SpanLogits`.


class QuestionHead(tf_keras.layers.Layer):
    """A head of extractive QA that scores the start and the end of an answer, and answerability.

    With `conditioned` the end depends on the start: a hidden layer reads the vectors of both (Yang
    et al., 2019, XLNet's code). The start is the true one in training, otherwise each of the most
    probable ones. Without it, ends are scored independently, as in BERT. Answerability is scored
    from [CLS] and the mean vector of the start. With `hidden_layer`, that of ModernBERT's heads
    comes first.
    """

    def __init__(self, path: str, hidden_size: int, *, conditioned: bool = True,
                 answerability: bool = True, hidden_layer: bool = False, seed: int):
        super().__init__(name=path, dtype="float32")

        def dense(name: str, inputs: int, outputs: int, kind: type[Dense] = Dense) -> Dense:
            return kind(f"{path}/{name}", inputs, outputs, LayerOptions(seed=seed))

        self.hidden = (dense("hidden", hidden_size, hidden_size, NormedGeluDense)
                       if hidden_layer else None)
        pair = 2 * hidden_size
        self.start = dense("dense", hidden_size, 1)
        self.end_hidden = dense("qa_hidden", pair, QUESTION_HIDDEN) if conditioned else None
        self.end = dense("dense_1", QUESTION_HIDDEN if conditioned else hidden_size, 1)
        self.impossible_hidden = (
            dense("dense_2", pair, QUESTION_HIDDEN, GeluDense) if answerability else None)
        self.impossible = dense("dense_3", QUESTION_HIDDEN, 1) if answerability else None

    def call(self, hidden: tf.Tensor, allowed: tf.Tensor, true_start: tf.Tensor) -> SpanLogits:
        """Scores every position of hidden [B, L, H], for training; `true_start` is int32 [B].

        `allowed` bool [B, L] is that of `answer_positions`.
        """
        hidden = self._input(hidden)
        start = _positions(self.start(hidden)) + _forbidding(allowed)
        ends = self._end_logits(hidden, allowed, true_start[:, tf.newaxis])
        return SpanLogits(start, ends[:, 0], self._impossible_logit(hidden, start))

    def beams(self, hidden: tf.Tensor, allowed: tf.Tensor, size: int) -> SpanBeams:
        """Returns the `size` most probable starts, and as many ends for each; see `call`."""
        hidden = self._input(hidden)
        start = _positions(self.start(hidden)) + _forbidding(allowed)
        # The K best starts [B, K], then the K best ends given each of them [B, K, K].
        start_log_probs, start_index = tf.math.top_k(tf.nn.log_softmax(start), size)
        ends = self._end_logits(hidden, allowed, start_index)
        end_log_probs, end_index = tf.math.top_k(tf.nn.log_softmax(ends), size)
        return SpanBeams(start_log_probs, start_index, end_log_probs, end_index,
                         self._impossible_logit(hidden, start))

    def _input(self, hidden: tf.Tensor) -> tf.Tensor:
        hidden = tf.cast(hidden, tf.float32)
        return hidden if self.hidden is None else self.hidden(hidden)

    def _end_logits(self, hidden: tf.Tensor, allowed: tf.Tensor, starts: tf.Tensor) -> tf.Tensor:
        """Scores ends, float32 [B, K, L], for each of the starts int32 [B, K]."""
        if self.end_hidden is None:
            logits = _positions(self.end(hidden)) + _forbidding(allowed)
            return tf.repeat(logits[:, tf.newaxis], dimensions(starts)[1], axis=1)
        size = hidden.shape[-1]
        # As [start; end] W = start W_s + end W_e, vectors are not repeated for every pair.
        kernel, bias = self.end_hidden.parameters()
        # [B, K, 512] and [B, L, 512]; their sum for every pair is [B, K, L, 512].
        from_starts = tf.matmul(tf.gather(hidden, starts, batch_dims=1), kernel[:size])
        from_ends = tf.matmul(hidden, kernel[size:])
        joint = gelu(from_starts[:, :, tf.newaxis] + from_ends[:, tf.newaxis], bias)
        return _positions(self.end(joint)) + _forbidding(allowed)[:, tf.newaxis]

    def _impossible_logit(self, hidden: tf.Tensor, start: tf.Tensor) -> tf.Tensor | None:
        if self.impossible_hidden is None:
            return None
        # sum_t p_start(t) h_t, [B, H].
        mean_start = tf.squeeze(tf.matmul(tf.nn.softmax(start)[:, tf.newaxis], hidden), axis=1)
        both = tf.concat([hidden[:, 0], mean_start], axis=-1)  # [CLS] is first.
        return _positions(self.impossible(self.impossible_hidden(both)))


def _positions(scores: tf.Tensor) -> tf.Tensor:
    """Drops the last axis, of size 1."""
    return tf.squeeze(scores, axis=-1)


def _forbidding(allowed: tf.Tensor) -> tf.Tensor:
    return tf.where(allowed, 0.0, FORBIDDEN)
