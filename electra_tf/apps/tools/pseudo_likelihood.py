"""Computes the likelihood of sentences under a pre-trained model without fine-tuning.

The generator's pseudo-log-likelihood of a sentence is the sum over its tokens of
ln p(token | all others), with one token hidden at a time (Salazar et al., 2020, "Masked language
model scoring", eq. 1). So is the restorer's: the discriminator's encoder with the head that
predicts original tokens. It was trained to read samples, not [MASK]. The discriminator's is the sum
of ln(1 - p(replaced)) over the tokens of the complete sentence, from one pass. Electric's
discriminator (Clark et al., EMNLP 2020, section 3.3) returns energies. Its score is the sum of -E,
which differs from the pseudo-log-likelihood by the normalizer of every token.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.core.errors import UserError, shown
from electra_tf.finetuning.predict import CompiledByShape
from electra_tf.formats.parts import build_networks, build_restorer, has_energies
from electra_tf.formats.pretrained import Checkpoint
from electra_tf.modeling.electra import Generator
from electra_tf.modeling.parameter_shapes import GENERATOR, RESTORER
from electra_tf.text.rows import RowEncoder, encode_texts
from electra_tf.training.strategies import NO_REWRITING, compile_silently

DISCRIMINATOR = "discriminator"
_BATCH_ROWS = 64


class PseudoLikelihood:
    """The networks of a pre-training run, ready to score sentences."""

    def __init__(self, checkpoint: Checkpoint):
        """Builds the networks; `UserError` if neither of them has its output layer."""
        self.source, self._text = checkpoint.source, checkpoint.text
        self._max_length = checkpoint.config.max_position_embeddings
        self._energies, self._model = has_energies(checkpoint), build_networks(checkpoint)
        self.networks = tuple(name for name, present in (
            (GENERATOR, checkpoint.has_generator), (DISCRIMINATOR, checkpoint.has_discriminator),
            (RESTORER, checkpoint.has_restorer)) if present)
        if not self.networks:
            raise UserError(f"{checkpoint.source} has no output layer of a generator or "
                            "discriminator: it was fine-tuned, or converted without them. Name a "
                            "pre-training run.")
        # The network that ranks by default: Electric's discriminator, otherwise the first one.
        self.best = DISCRIMINATOR if self._energies else self.networks[0]
        # TensorFlow's graph rewriting delays each length, and prints warnings that have no switch.
        tf.config.optimizer.set_experimental_options({NO_REWRITING: True})
        compile_silently()
        language_models = {GENERATOR: self._model.generator}
        if checkpoint.has_restorer:
            language_models[RESTORER] = build_restorer(checkpoint)
        self._compiled = {DISCRIMINATOR: CompiledByShape(self._compute_discriminator)} | {
            name: CompiledByShape(functools.partial(self._compute_language_model, network))
            for name, network in language_models.items()}

    def score(self, sentences: Sequence[str], *, networks: Sequence[str] = (),
              per_token: bool = False) -> Mapping[str, np.ndarray]:
        """Returns network -> scores, float64 [S] in nats.

        `networks` are names of some, by default of all. `per_token` divides each score by the
        number of tokens in its sum. `UserError` for a sentence that is too long or has no tokens.
        """
        # Rows [CLS] pieces [SEP], none of them cut.
        encoder = RowEncoder(self._text, max_length=1 << 20)
        rows = [row.ids for row in encode_texts([(text,) for text in sentences], encoder)[0]]
        for row, sentence in zip(rows, sentences, strict=True):
            if not 2 < len(row) <= self._max_length:
                raise UserError(
                    f"a sentence has {len(row) - 2} tokens, and the model reads 1 to "
                    f"{self._max_length - 2}; shorten, split or remove it: {shown(sentence)}")
        # A sum of log probabilities for every sentence, or its mean per token.
        lengths = [len(row) - 2 if per_token else 1 for row in rows]
        return {network: self._sums(network, rows) / lengths
                for network in (networks or self.networks)}

    def _sums(self, network: str, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the scores of rows, float64 [S]."""
        # Sentence and hidden position of every row to read, 0 for none, short sentences first.
        readings = [(sentence, position) for sentence, row in enumerate(rows)
                    for position in ([0] if network == DISCRIMINATOR else range(1, len(row) - 1))]
        readings.sort(key=lambda reading: len(rows[reading[0]]))
        vocabulary, scores = self._text.vocabulary, np.zeros(len(rows))
        for start in range(0, len(readings), _BATCH_ROWS):
            # Ids [64, L]: L is a multiple of 8 or the maximum, because a graph is built for each
            # length. Unused rows of the last batch are [PAD].
            batch = readings[start:start + _BATCH_ROWS]
            length = min(-(-len(rows[batch[-1][0]]) // 8) * 8, self._max_length)
            ids = np.full([_BATCH_ROWS, length], vocabulary.pad_id, np.int32)
            positions, originals = np.zeros([2, _BATCH_ROWS], np.int32)
            for line, (sentence, position) in enumerate(batch):
                ids[line, :len(rows[sentence])] = rows[sentence]
                positions[line], originals[line] = position, ids[line, position]
                if position:
                    ids[line, position] = vocabulary.mask_id
            # What each row's reading, [64], adds to its sentence's score.
            values = self._compiled[network](
                ids.shape, tuple(map(tf.constant, (ids, positions, originals))))
            np.add.at(scores, [sentence for sentence, _ in batch], values.numpy()[:len(batch)])
        return scores

    def _compute_language_model(self, network: Generator,
                                inputs: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns ln p of one token per row, float32 [64]; takes ids, positions, original ids."""
        ids, positions, originals = inputs
        # Logits [64, V] of the hidden position of each row.
        logits = network(ids, tf.zeros_like(ids), ids != self._text.vocabulary.pad_id,
                         positions[:, tf.newaxis])
        return tf.gather(tf.nn.log_softmax(logits), originals, batch_dims=1)

    def _compute_discriminator(self, inputs: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns the sum of ln(1 - p(replaced)) or of -E, float32 [64], of ordinary tokens."""
        # Logits of replacement or energies, [64, L], summed over tokens but [CLS] and [SEP].
        (ids, _, _), vocabulary = inputs, self._text.vocabulary
        padding_mask = ids != vocabulary.pad_id
        logits = self._model.discriminator(ids, tf.zeros_like(ids), padding_mask)
        counted = padding_mask & (ids != vocabulary.cls_id) & (ids != vocabulary.sep_id)
        scores = -logits if self._energies else tf.math.log_sigmoid(-logits)
        return tf.reduce_sum(tf.where(counted, scores, 0.0), axis=1)
