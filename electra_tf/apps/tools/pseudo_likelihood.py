"""Computes the likelihood of sentences under a pre-trained model without fine-tuning.

The generator's pseudo-log-likelihood of a sentence is the sum over its tokens of
ln p(token | all others), with one token hidden at a time (Salazar et al., 2020, "Masked language
model scoring", eq. 1). The discriminator's is the sum of ln(1 - p(replaced)) over the tokens of the
complete sentence, from one pass. Electric's discriminator (Clark et al., EMNLP 2020, section 3.3)
returns energies. Its score is the sum of -E, which differs from the pseudo-log-likelihood by the
normalizer of every token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.finetuning.predictor import CompiledByLength
from electra_tf.formats.pretrained import Pretrained
from electra_tf.platform.errors import UserError, shown
from electra_tf.text.rows import RowEncoder, encode_texts

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
_ROWS = 64
"""Number of rows of a batch."""
_LENGTH_STEP = 8
"""Rows are padded to a multiple of it, and one graph is built for each length."""


class PseudoLikelihood:
    """The networks of a pre-training run, ready to score sentences."""

    def __init__(self, networks: Pretrained):
        """Builds the networks; `UserError` if neither of them has its output layer."""
        self.source, self._text = networks.source, networks.text
        self._longest = networks.model.max_position_embeddings
        self._energies, self._model = networks.has_energies, networks.build()
        self._log_probabilities = CompiledByLength(self._hidden_tokens)
        self._log_originals = CompiledByLength(self._whole_sentences)
        self.networks = tuple(name for name, present in (
            (GENERATOR, networks.has_generator), (DISCRIMINATOR, networks.has_discriminator))
            if present)
        if not self.networks:
            raise UserError(f"{networks.source} has neither a generator's nor a discriminator's "
                            "output layer: it was fine-tuned, or converted without them.")

    @property
    def best(self) -> str:
        """The network that ranks by default: Electric's discriminator, otherwise the first one."""
        return DISCRIMINATOR if self._energies else self.networks[0]

    def lengths(self, sentences: Sequence[str]) -> np.ndarray:
        """Returns the number of tokens in the sum of each score, int64 [S], at least 1."""
        return np.array([max(1, len(row) - 2) for row in self._rows_of(sentences)])

    def score(self, sentences: Sequence[str]) -> Mapping[str, np.ndarray]:
        """Returns network -> scores, float64 [S] in nats; `UserError` for too long a sentence."""
        rows = self._rows_of(sentences)
        row, sentence = max(zip(rows, sentences, strict=True), key=lambda pair: len(pair[0]))
        if len(row) > self._longest:
            raise UserError(f"a sentence has {len(row)} tokens; the model reads {self._longest} at "
                            f"most; shorten or split it: {shown(sentence)}")
        scores = {GENERATOR: self._generator_scores, DISCRIMINATOR: self._discriminator_scores}
        return {network: scores[network](rows) for network in self.networks}

    def _rows_of(self, sentences: Sequence[str]) -> list[np.ndarray]:
        encoder = RowEncoder(self._text, max_length=1 << 20)
        return [row.ids for row in encode_texts([(text,) for text in sentences], encoder)[0]]

    def _generator_scores(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        """Returns float64 [S]; hides one token at a time, except [CLS] and [SEP]."""
        hidden_tokens = [(sentence, position) for sentence, row in enumerate(rows)
                         for position in range(1, len(row) - 1)]

        def hidden(index: int) -> np.ndarray:
            sentence, position = hidden_tokens[index]
            row = rows[sentence].copy()
            row[position] = self._text.vocabulary.mask_id
            return row

        sums = np.zeros(len(rows))
        for chosen, ids in self._batches([len(rows[one]) for one, _ in hidden_tokens], hidden):
            sentence, position = np.array([hidden_tokens[index] for index in chosen]).T
            wanted = [rows[one][at] for one, at in zip(sentence, position, strict=True)]
            fill = [0, _ROWS - len(chosen)]
            found = self._log_probabilities(ids.shape[1], tuple(
                tf.constant(part, tf.int32) for part in (ids, np.pad(position, fill),
                                                         np.pad(wanted, fill))))
            np.add.at(sums, sentence, found.numpy()[:len(chosen)])
        return sums

    def _discriminator_scores(self, rows: Sequence[np.ndarray]) -> np.ndarray:
        sums = np.zeros(len(rows))
        for chosen, ids in self._batches([len(row) for row in rows], rows.__getitem__):
            found = self._log_originals(ids.shape[1], tf.constant(ids))
            sums[chosen] = found.numpy()[:len(chosen)]
        return sums

    def _batches(self, lengths: Sequence[int], row: Callable[[int], np.ndarray]
                 ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields indices of rows and their padded ids, int32 [64, L]; short rows come first."""
        order = np.argsort(lengths, kind="stable")
        for first in range(0, len(order), _ROWS):
            chosen = order[first:first + _ROWS]
            length = -(-lengths[chosen[-1]] // _LENGTH_STEP) * _LENGTH_STEP
            ids = np.full([_ROWS, min(length, self._longest)], self._text.vocabulary.pad_id,
                          np.int32)
            for line, index in enumerate(chosen):
                ids[line, :lengths[index]] = row(index)
            yield chosen, ids

    def _hidden_tokens(self, inputs: tuple[tf.Tensor, tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """Returns ln p of one token per row, float32 [64]; takes ids, positions, original ids."""
        ids, positions, wanted = inputs
        logits = self._model.generator(
            ids, tf.zeros_like(ids), self._valid(ids), positions[:, tf.newaxis])
        return tf.gather(tf.nn.log_softmax(logits), wanted, batch_dims=1)

    def _whole_sentences(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the sum of ln(1 - p(replaced)) or of -E, float32 [64], of ordinary tokens."""
        valid = self._valid(ids)
        logits = self._model.discriminator(ids, tf.zeros_like(ids), valid)
        vocabulary = self._text.vocabulary
        counted = valid & (ids != vocabulary.cls_id) & (ids != vocabulary.sep_id)
        scores = -logits if self._energies else tf.math.log_sigmoid(-logits)
        return tf.reduce_sum(tf.where(counted, scores, 0.0), axis=1)

    def _valid(self, ids: tf.Tensor) -> tf.Tensor:
        return ids != self._text.vocabulary.pad_id
