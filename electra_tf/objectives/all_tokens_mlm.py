"""All-Tokens MLM: predicts every token of a text that a generator corrupted (section 3.4).

Between BERT and ELECTRA: like the one it predicts identities, like the other it learns of all
tokens. Most stand there already, so the encoder may copy: with D the probability of copying, from
a sigmoid, p(x_t) = D [x_t is what stands there] + (1 - D) softmax(x_t).
"""

import numpy as np
import tensorflow as tf

from electra_tf.data.example import Batch
from electra_tf.modeling.corruption import Corrupted
from electra_tf.modeling.masking import Predictions, gather_tokens
from electra_tf.modeling.randomness import Randomness
from electra_tf.modeling.variants import RestoringModel
from electra_tf.objectives.masked_tokens import MaskedBatch, count, score_predictions
from electra_tf.objectives.objective import Arrays, Outcome, Written
from electra_tf.objectives.replace_mlm import ReplaceMlmObjective


class AllTokensMlmObjective(ReplaceMlmObjective):
    """min L_MLM(generator) + the cross entropy of all tokens under the mixture."""

    copies = True
    loss = "all_tokens_loss"
    restored_fraction = 1.0

    def restored(self, inputs: MaskedBatch) -> tf.Tensor:
        """Returns the number of real tokens."""
        return count(inputs.original.valid)

    def restore(self, model: RestoringModel, inputs: MaskedBatch, corrupted: Corrupted,
                randomness: Randomness, *, training: bool) -> Outcome:
        """Predicts all tokens; "logits" float32 [B, L] are those of not copying."""
        batch, selected = inputs.original, inputs.masked.predictions
        hidden = model.restorer.encode(
            corrupted.ids, batch.segment_ids, batch.valid, randomness if training else None)
        everywhere = Predictions(tf.zeros_like(batch.ids), batch.ids, batch.valid)
        predicted = score_predictions(
            model.restorer.head(tf.reshape(hidden, [-1, hidden.shape[-1]])), everywhere,
            training=training)
        not_copying = model.copying(hidden)
        losses = copy_loss(-not_copying, predicted.losses, ~corrupted.replaced)
        return Outcome(
            {self.loss: tf.reduce_sum(losses * tf.cast(batch.valid, tf.float32))}, {},
            {"restored_ids": gather_tokens(predicted.best_ids, selected.positions),
             "corrupted_ids": corrupted.ids, "replaced": corrupted.replaced,
             "logits": not_copying})

    def judge(self, model: RestoringModel, batch: Batch) -> tf.Tensor:
        """Returns the logits float32 [B, L] of not copying a token."""
        return model.copying(model.restorer.encode(batch.ids, batch.segment_ids, batch.valid))

    def written(self, details: Arrays) -> Written:
        """Returns the corrupted text, and how likely each token is not to be copied."""
        return Written(details["corrupted_ids"], 1.0 / (1.0 + np.exp(-details["logits"])))


def copy_loss(copy_logits: tf.Tensor, losses: tf.Tensor, unchanged: tf.Tensor) -> tf.Tensor:
    """Returns -log(D [unchanged] + (1 - D) p), with D = sigmoid(copy_logits) and p = exp(-losses).

    Computed from logarithms, so that neither a tiny D nor a tiny p loses anything.

    Args:
        copy_logits: float32 [...].
        losses: float32 [...], -log p of the original token under the softmax.
        unchanged: bool [...], whether the original token stands there.
    """
    predicted = tf.math.log_sigmoid(-copy_logits) - losses
    copied = tf.math.log_sigmoid(copy_logits)
    larger = tf.stop_gradient(tf.maximum(copied, predicted))
    either = larger + tf.math.log(tf.exp(copied - larger) + tf.exp(predicted - larger))
    return -tf.where(unchanged, either, predicted)
