"""Pre-trained networks, ready to use: vectors of texts, replaced words, words for [MASK]."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from electra_tf.api.encoder import ElectraEncoder
from electra_tf.checkpoints import formats
from electra_tf.checkpoints.pretrained import Pretrained
from electra_tf.checkpoints.weights import assign_parts
from electra_tf.config.model import Tying
from electra_tf.modeling.electra import ElectraModel
from electra_tf.modeling.fused import inference_mode
from electra_tf.objectives.registry import objective_class
from electra_tf.platform import storage
from electra_tf.platform.errors import UserError
from electra_tf.text.rows import RowEncoder

BATCH = 32
"""Texts that are encoded together."""


class Word(NamedTuple):
    """A word and a probability."""

    text: str
    probability: float


class Electra:
    """A pre-trained ELECTRA: its encoder, and the discriminator and the generator if it has them.

    `electra_tf.load` returns one.

    Attributes:
        source: where the weights come from.
        model: the sizes of both networks.
        encoder: the discriminator's encoder as a tf_keras layer, for models of your own.
    """

    def __init__(self, networks: Pretrained):
        self.source, self.model = networks.source, networks.model
        self._text = networks.text
        self._energies = objective_class(networks.objective).energies
        self._network = ElectraModel(networks.model, seed=0)
        self._missing = assign_parts(self._network.variables, networks.weights, networks.source)
        self._rows = RowEncoder(networks.text, networks.model.max_position_embeddings)
        self.encoder = ElectraEncoder(
            networks.model.discriminator, networks.text.vocabulary.tokens,
            vars(networks.text.normalization), encoder=self._network.discriminator.encoder)

    def embed(self, texts: Sequence[str], *, pooling: str = "mean") -> np.ndarray:
        """Returns one vector for each text.

        Args:
            texts: N texts; what is beyond the longest row that the encoder reads is ignored.
            pooling: "mean" averages the vectors of all tokens; "cls" takes that of [CLS].

        Returns:
            float32 [N, H].

        Raises:
            UserError: another `pooling`, or a single string instead of a list.

        Example:
            >>> electra.embed(["First text.", "Second text."]).shape  # [N, H]
            (2, 32)
        """
        if pooling not in ("mean", "cls"):
            raise UserError(f"pooling must be 'mean' or 'cls'. Received: {pooling!r}")
        if isinstance(texts, str):
            raise UserError("texts must be a list of strings. Received one string; write [text].")
        vectors = np.zeros([len(texts), self.model.hidden_size], np.float32)
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        for first in range(0, len(order), BATCH):
            indices = order[first:first + BATCH]
            hidden, valid = self._hidden(tf.constant([texts[index] for index in indices]))
            weights = valid.numpy().astype(np.float32)[:, :, np.newaxis]
            vectors[indices] = hidden.numpy()[:, 0] if pooling == "cls" else (
                (hidden.numpy() * weights).sum(axis=1) / weights.sum(axis=1))
        return vectors

    def detect(self, text: str) -> list[Word]:
        """Returns the words of a text, each with the probability that it was replaced.

        A word of several pieces has the probability of its likeliest piece.

        Raises:
            UserError: the checkpoint has no discriminator, or the text is too long.

        Example:
            >>> [word.text for word in electra.detect("The chef ate the piano.")]
            ['The', 'chef', 'ate', 'the', 'piano', '.']
        """
        if self._energies or "discriminator_predictions" in self._missing:
            raise UserError(f"{self.source} has no discriminator with probabilities; load a run "
                            "of objective.name=electra or a published discriminator.")
        words = self._rows.tokenizer.tokenize_words(tf.constant([text]))
        written = [word.decode() for word in words.texts[0].numpy()]
        lengths = words.pieces.row_lengths().numpy()
        ids = self._row(words.pieces.flat_values.numpy())
        found = self._probabilities(tf.constant([ids])).numpy()[0, 1:-1]
        ends = np.cumsum(lengths)
        return [Word(word, float(found[end - length:end].max()))
                for word, length, end in zip(written, lengths, ends, strict=True) if length]

    def fill(self, text: str, *, candidates: int = 5) -> list[list[Word]]:
        """Returns the generator's likeliest words for every [MASK] of a text.

        Args:
            text: holds "[MASK]" once or more.
            candidates: words for each [MASK].

        Returns:
            A list for each [MASK], the likeliest word first; "##" marks the continuation of a word.

        Raises:
            UserError: the checkpoint has no generator, the text no [MASK], or it is too long.

        Example:
            >>> [[len(words)] for words in electra.fill("The [MASK] cooked the [MASK].")]
            [[5], [5]]
        """
        needed = {"generator_predictions"} | (
            set() if self.model.tying is Tying.EVERYTHING else {"generator"})
        if needed & set(self._missing):
            raise UserError(f"{self.source} has no generator; load a pre-training run, or the "
                            "checkpoint of a generator beside it.")
        vocabulary = self._text.vocabulary
        parts = self._rows.tokenizer.tokenize(tf.constant(text.split("[MASK]"))).to_list()
        if len(parts) == 1:
            raise UserError("text holds no [MASK]; put one where a word is wanted.")
        inside = parts[0]
        for part in parts[1:]:
            inside = [*inside, vocabulary.mask_id, *part]
        ids = self._row(inside)
        places = np.flatnonzero(np.array(ids) == vocabulary.mask_id)
        shares, words = self._candidates(tf.constant([ids]), tf.constant([places], tf.int32),
                                         min(candidates, vocabulary.size))
        return [[Word(vocabulary.tokens[index], float(share))
                 for index, share in zip(*row, strict=True)]
                for row in zip(words.numpy(), shares.numpy(), strict=True)]

    def _row(self, inside: Sequence[int]) -> list[int]:
        """Returns a row of ids with [CLS] and [SEP]."""
        most = self.model.max_position_embeddings - 2
        if len(inside) > most:
            raise UserError(f"the text has {len(inside):,} tokens and the networks read {most:,} "
                            "at most; shorten it.")
        return [self._text.vocabulary.cls_id, *map(int, inside), self._text.vocabulary.sep_id]

    @functools.cached_property
    def _hidden(self):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
        def hidden(texts):
            return self.encoder(texts), self.encoder.tokens(texts).valid
        return hidden

    @functools.cached_property
    def _probabilities(self):
        @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)], autograph=False)
        def probabilities(ids):
            with inference_mode():
                return tf.sigmoid(self._network.discriminator(
                    ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool)))
        return probabilities

    @functools.cached_property
    def _candidates(self):
        @tf.function(autograph=False, reduce_retracing=True)
        def candidates(ids, positions, count):
            with inference_mode():
                logits = self._network.generator(
                    ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool), positions)
            logits = tf.cast(logits, tf.float32)[:, :self._text.vocabulary.size]
            return tf.math.top_k(tf.nn.softmax(logits), count)
        return candidates


def load(name: str) -> Electra:
    """Returns the pre-trained networks of a checkpoint.

    Args:
        name: a run's directory, a directory in Hugging Face's form, a TensorFlow 1 checkpoint of
            Google's code, or a model of the Hugging Face Hub, `owner/name` or
            `hf://owner/name@revision`.

    Raises:
        UserError: no checkpoint, a damaged one, or one of another architecture.

    Example:
        >>> import electra_tf
        >>> electra = electra_tf.load("runs/small")  # doctest: +SKIP
    """
    return Electra(formats.read(storage.path(name)))
