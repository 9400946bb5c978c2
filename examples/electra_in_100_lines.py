"""Pre-trains a tiny ELECTRA: tokenize, mask, generate, corrupt, detect, update (section 3.1).

    python examples/electra_in_100_lines.py

The text is Python's documentation. Training takes 90 s on two cores with AVX-512; the AUC is 0.81.
B is batch, L length, N masked positions, V the vocabulary rounded up to a multiple of 128.
"""

import collections

import numpy as np
import tensorflow as tf
import tf_keras
from sklearn.metrics import roc_auc_score

from data_prep.sources import embedded
from data_prep.vocabulary_learner import learn
from electra_tf.config.corruption import MaskingConfig
from electra_tf.config.model import InitializationConfig, ModelConfig
from electra_tf.modeling.corruption import corrupt, cross_entropy, distribution, sample
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.initialization import initialize
from electra_tf.modeling.masking import SpecialTokens, VocabInfo, mask_tokens
from electra_tf.modeling.rng import Rng
from electra_tf.text.normalization import TextSettings
from electra_tf.text.tokenizer import Tokenizer, WordSplitter

STEPS, PRINT_EVERY, B, L, VOCAB_SIZE = 1000, 100, 32, 64, 4096
LEARNING_RATE, DISCRIMINATOR_WEIGHT, MASKING = 1e-3, 50.0, MaskingConfig(rate=0.25)
MODEL = ModelConfig(
    vocab_size=VOCAB_SIZE, embedding_size=64, hidden_size=128, num_layers=2, num_heads=2,
    intermediate_size=512, max_position_embeddings=L, generator_width=0.5, generator_depth=0.5,
    hidden_dropout=0.0, attention_dropout=0.0, initializer_range=0.08)


def tokenized_text() -> tuple[np.ndarray, VocabInfo]:
    """Returns rows [CLS] text [SEP], int32 [rows, L], and the kinds of the vocabulary's tokens."""
    paragraphs = [line for document in embedded.documents() for line in document]
    words = WordSplitter().words(tf.constant(paragraphs)).flat_values.numpy()
    vocabulary = learn(collections.Counter(words.tolist()), VOCAB_SIZE)
    tokens = Tokenizer(TextSettings(vocabulary=vocabulary)).tokenize(tf.constant(paragraphs))
    rows = tokens.flat_values[:len(tokens.flat_values) // (L - 2) * (L - 2)].numpy()
    rows = np.pad(rows.reshape([-1, L - 2]), [[0, 0], [1, 1]])
    rows[:, 0], rows[:, -1] = vocabulary.cls_id, vocabulary.sep_id
    special = SpecialTokens(
        vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id)
    return rows, VocabInfo(special, VOCAB_SIZE, vocabulary.continues)


def electra_losses(model: ElectraModel, ids: tf.Tensor, kinds: VocabInfo, step: tf.Tensor):
    """Returns both losses of ids int32 [B, L], which tokens were replaced, and their logits."""
    rng = Rng(seed=0, step=step, first_example=tf.constant(0, tf.int64))
    segments, padding_mask = tf.zeros_like(ids), tf.ones_like(ids, tf.bool)
    masked_ids, masked = mask_tokens(ids, padding_mask, MASKING, kinds, rng)  # [B, L], [B, N]
    # The generator predicts the masked tokens; without padding, all N positions are filled.
    logits = model.generator(masked_ids, segments, padding_mask, masked.positions)  # [B * N, V]
    softmax = distribution(logits)
    generator_losses = cross_entropy(logits, tf.reshape(masked.original_ids, [-1]), softmax)
    # Samples from its softmax replace them; no gradient passes through the samples.
    uniforms = rng.uniform("sampling", *masked.positions.shape)  # [B, N]
    sampled = tf.reshape(sample(softmax, tf.reshape(uniforms, [-1])), uniforms.shape)
    corrupted, replaced = corrupt(ids, padding_mask, masked, sampled)  # both [B, L]
    # The discriminator tells replaced tokens from original ones, at every position.
    scores = model.discriminator(corrupted, segments, padding_mask)  # [B, L]
    detection = tf.nn.sigmoid_cross_entropy_with_logits(tf.cast(replaced, tf.float32), scores)
    return tf.reduce_mean(generator_losses), tf.reduce_mean(detection), replaced, scores


def train(steps: int = STEPS) -> float:
    """Trains, prints losses and the AUC on held-out rows; returns the last AUC."""
    rows, kinds = tokenized_text()
    held_out, rows = rows[:4 * B], rows[4 * B:]
    model = ElectraModel(MODEL, seed=0)
    initialize(model, InitializationConfig(scheme="adjacent"), kinds.special.cls)  # For short runs.
    schedule = tf_keras.optimizers.schedules.PolynomialDecay(LEARNING_RATE, steps, 0.0)
    optimizer = tf_keras.optimizers.Adam(schedule, global_clipnorm=1.0)

    @tf.function
    def update(ids, step):
        with tf.GradientTape() as tape:
            generator_loss, detection_loss, *_ = electra_losses(model, ids, kinds, step)
            loss = generator_loss + DISCRIMINATOR_WEIGHT * detection_loss
        optimizer.minimize(loss, model.trainable_variables, tape)  # Gradients, clipping, Adam.
        return generator_loss, detection_loss

    batches = tf.data.Dataset.from_tensor_slices(rows).shuffle(len(rows), seed=0).repeat()
    for step, ids in enumerate(batches.batch(B, drop_remainder=True).take(steps), start=1):
        generator_loss, detection_loss = update(ids, tf.constant(step, tf.int64))
        if step % PRINT_EVERY == 0 or step == steps:
            *_, replaced, scores = electra_losses(model, held_out, kinds, tf.constant(0, tf.int64))
            auc = roc_auc_score(tf.reshape(replaced, [-1]), tf.reshape(scores, [-1]))
            print(f"step {step:,}  generator {generator_loss:.3f}  discriminator "
                  f"{detection_loss:.3f}  AUC {auc:.3f}")
    return auc


if __name__ == "__main__":
    train()
