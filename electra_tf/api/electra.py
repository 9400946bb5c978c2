"""Loads pre-trained networks, which embed texts, detect replaced words and fill [MASK]."""

import dataclasses
import functools
import os
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.api.encoder import ElectraEncoder
from electra_tf.api.tokenizer import ElectraTokenizer
from electra_tf.config.finetuning import POOLING_MODES
from electra_tf.core import storage
from electra_tf.core.errors import UserError
from electra_tf.core.settings import require
from electra_tf.export.atomic_directory import atomic_directory
from electra_tf.formats import hugging_face, pretrained
from electra_tf.formats.parts import build_networks, has_energies
from electra_tf.formats.pretrained import Checkpoint, Format
from electra_tf.modeling.fused import inference_mode
from electra_tf.modeling.parameter_shapes import RESTORER
from electra_tf.modeling.pooling import pool
from electra_tf.tasks.in_memory import to_list, to_string
from electra_tf.text.rows import RowEncoder, cut_notes


class Word(NamedTuple):
    """A word and a probability."""

    text: str
    probability: float


class Electra:
    """A pre-trained ELECTRA from `electra_tf.load`: encoder, discriminator and generator if any.

    Attributes:
        source (str): Where the weights come from.
        config (ModelConfig): The sizes of both networks.
        encoder (ElectraEncoder): The discriminator's encoder, a tf_keras layer for your models.
            Training it also changes what `embed` and `detect` return.
    """

    def __init__(self, checkpoint: Checkpoint):
        self.source, self.config = checkpoint.source, checkpoint.config
        # Memory holds the weights once, in variables; those of a head that restores tokens, which
        # only `save` needs, in arrays.
        head = f"{RESTORER}_predictions/" if checkpoint.has_restorer else ()
        self._checkpoint = dataclasses.replace(checkpoint, weights={
            name: value if name.startswith(head) else np.zeros(0)
            for name, value in checkpoint.weights.items()})
        self._vocabulary, self._pooling = checkpoint.text.vocabulary, checkpoint.pooling
        self._model = build_networks(checkpoint, tf_keras.mixed_precision.global_policy().name)
        positions, max_length = self.config.max_position_embeddings, self._pooling.max_length
        self._row_encoder = self._embedding_row_encoder = RowEncoder(checkpoint.text, positions)
        if max_length is not None:
            self._embedding_row_encoder = RowEncoder(checkpoint.text, min(positions, max_length))
        self.encoder = ElectraEncoder(
            checkpoint.config.discriminator, checkpoint.text.vocabulary.tokens,
            vars(checkpoint.text.normalization), encoder=self._model.discriminator.encoder)

    def embed(self, texts: Sequence[str], *, pooling: str | None = None,
              batch_size: int = 32) -> np.ndarray:
        """Returns one vector for each text.

        A directory of sentence-transformers defines pooling, normalization and length; other
        checkpoints have the mean of all tokens, [CLS] and [SEP] included. Cosines of vectors from
        pre-training alone say little about the similarity of texts: train the encoder for them
        first (docs/how_to/sentence_embeddings.md).

        Args:
            texts: N texts. Texts that are longer than the encoder reads are cut, with a warning.
            pooling: "mean", "cls" (the vector of [CLS]), "max", "mean_sqrt_len_tokens",
                "weightedmean" or "lasttoken"; by default the checkpoint's.
            batch_size: Number of texts that are encoded together.

        Returns:
            float32 [N, H], or [N, M H] of a checkpoint with M kinds of pooling.

        Examples:
            >>> electra.embed(["First text.", "Second text."]).shape[0]
            2
        """
        require(pooling in (None, *POOLING_MODES), "pooling",
                f"one of {', '.join(POOLING_MODES)}", pooling)
        require(batch_size >= 1, "batch_size", "1 or more", batch_size)
        # Batches of texts of similar length, and one vector of a text for each kind of pooling.
        strings = [to_string(text, f"texts:{number}")
                   for number, text in enumerate(to_list(texts), start=1)]
        modes = self._pooling.modes if pooling is None else (pooling,)
        vectors = np.zeros([len(strings), len(modes) * self.config.hidden_size], np.float32)
        lengths = np.zeros(len(strings), np.int32)
        order = sorted(range(len(strings)), key=lambda index: len(strings[index]))
        for first in range(0, len(order), batch_size):
            indices = order[first:first + batch_size]
            pooled, lengths[indices] = self._embed_batch(
                tf.constant([strings[index] for index in indices]))
            vectors[indices] = np.concatenate([pooled[mode] for mode in modes], axis=1)
        # Vectors of length 1 if the checkpoint asks for it, and a note on texts that were cut.
        if self._pooling.normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        for note in cut_notes(
                lengths, self._embedding_row_encoder.max_length, "max_length", "texts"):
            warnings.warn(note, stacklevel=2)
        return vectors

    def detect(self, text: str) -> list[Word]:
        """Returns the words of a text, each with the probability that it was replaced.

        Words are split as WordPiece splits them: at spaces and around punctuation. A word of
        several pieces has the probability of its most likely piece. Raises UserError for a
        checkpoint without a discriminator.

        Examples:
            >>> [word.text for word in electra.detect("The chef ate the piano.")]
            ['The', 'chef', 'ate', 'the', 'piano', '.']
        """
        if not self._checkpoint.has_discriminator or has_energies(self._checkpoint):
            raise UserError(f"{self.source} has no discriminator that returns probabilities; load "
                            "a run of objective.name=electra or a published discriminator.")
        words = self._row_encoder.tokenizer.tokenize_words(tf.constant([to_string(text)]))
        lengths = words.pieces.row_lengths().numpy()
        ids = self._build_row(words.pieces.flat_values.numpy())
        probabilities = self._detect_row(tf.constant([ids])).numpy()[0, 1:-1]
        return [Word(word.decode(), float(probabilities[end - length:end].max()))
                for word, length, end in zip(words.texts[0].numpy(), lengths, np.cumsum(lengths),
                                             strict=True) if length]

    def fill(self, text: str, *, candidates: int = 5) -> list[list[Word]]:
        """Returns the generator's most likely words for every [MASK] of a text.

        Each [MASK] has a list of `candidates` words, with the most likely word first. "##" marks a
        piece that continues a word. Raises UserError for a checkpoint without a generator.

        Examples:
            >>> [[len(words)] for words in electra.fill("The [MASK] cooked the [MASK].")]
            [[5], [5]]
        """
        if not self._checkpoint.has_generator:
            raise UserError(f"{self.source} has no generator; load a pre-training run, or the "
                            "checkpoint of a generator beside it.")
        require(isinstance(candidates, int) and candidates >= 1, "candidates", "an int from 1",
                candidates)
        # The text between the masks, [MASK] between these pieces.
        vocabulary = self._vocabulary
        segments = self._row_encoder.tokenizer.tokenize(
            tf.constant(to_string(text).split("[MASK]"))).to_list()
        if len(segments) == 1:
            raise UserError("text has no [MASK]; write [MASK] in place of each missing word.")
        ids = self._build_row(
            [index for pieces in segments for index in (vocabulary.mask_id, *pieces)][1:])
        # The likeliest tokens at each of the N masks, [N, candidates].
        positions = np.flatnonzero(np.array(ids) == vocabulary.mask_id)
        probabilities, words = self._fill_row(tf.constant([ids]), tf.constant(
            [positions], tf.int32), min(candidates, vocabulary.size))
        return [[Word(vocabulary.tokens[index], float(probability))
                 for index, probability in zip(*row, strict=True)]
                for row in zip(words.numpy(), probabilities.numpy(), strict=True)]

    @functools.cached_property
    def tokenizer(self) -> ElectraTokenizer:
        """The tokenizer, a tf_keras layer for your models and `tf.data`."""
        return ElectraTokenizer(
            self._vocabulary.tokens, vars(self._checkpoint.text.normalization),
            max_length=self.config.max_position_embeddings)

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Writes a new run with the networks as they are now, for example after `fit`.

        `electra_tf.load`, converters and `run_finetuning.py --init_checkpoint` read it. It has no
        head of a task, and no pooling of sentence-transformers, which a warning says.
        """
        with atomic_directory(storage.path(directory)) as unfinished:
            pretrained.write(self._current(keeps_pooling=False), unfinished, Format.RUN)

    def save_pretrained(self, directory: str | os.PathLike[str]) -> None:
        """Writes a new directory in Hugging Face's format; see `save`.

        It has the folder `discriminator`, and `generator` if there is one. An encoder alone is
        written without folders, with the files of sentence-transformers if vectors are normalized.
        """
        is_encoder = not (self._checkpoint.has_discriminator or self._checkpoint.has_generator)
        checkpoint = self._current(keeps_pooling=is_encoder and self._pooling.normalize)
        write = hugging_face.write_encoder if is_encoder else hugging_face.write
        with atomic_directory(storage.path(directory)) as unfinished:
            write(checkpoint, unfinished)

    def _current(self, *, keeps_pooling: bool) -> Checkpoint:
        """Returns the networks with their present weights; warns if they lose their pooling."""
        if not keeps_pooling and self._pooling != Checkpoint.pooling:
            warnings.warn(f"the saved networks do not include the pooling of {self.source}: their "
                          "embed returns the mean over all tokens, without "
                          "normalization.", stacklevel=3)
        weights = {variable.name.split(":")[0]: variable.numpy()
                   for variable in self._model.variables}
        return dataclasses.replace(self._checkpoint, task=None, task_settings={}, weights={
            name: weights.get(name, value) for name, value in self._checkpoint.weights.items()
            if name in weights or value.size})

    def __reduce__(self) -> tuple[type["Electra"], tuple[Checkpoint]]:
        """Pickles the networks as they are now; TensorFlow's functions are traced anew."""
        return Electra, (self._current(keeps_pooling=True),)

    def _build_row(self, pieces: Sequence[int]) -> list[int]:
        max_pieces = self.config.max_position_embeddings - 2
        if len(pieces) > max_pieces:
            raise UserError(f"the text has {len(pieces):,} tokens and the networks read "
                            f"{max_pieces:,} at most; shorten it.")
        return [self._vocabulary.cls_id, *map(int, pieces), self._vocabulary.sep_id]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def _embed_batch(self, texts: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns vectors, float32 [B, H] by mode of pooling, and uncut lengths, int32 [B]."""
        tokens, lengths = self._embedding_row_encoder.encode_counted(texts)
        hidden = self.encoder(tokens._asdict())
        return {mode: pool(hidden, hidden._keras_mask, mode) for mode in POOLING_MODES}, lengths

    @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)], autograph=False)
    def _detect_row(self, ids: tf.Tensor) -> tf.Tensor:
        with inference_mode():
            logits = self._model.discriminator(
                ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool))
        return tf.sigmoid(tf.cast(logits, tf.float32))

    @tf.function(autograph=False, input_signature=[
        tf.TensorSpec([1, None], tf.int32), tf.TensorSpec([1, None], tf.int32),
        tf.TensorSpec([], tf.int32)])
    def _fill_row(self, ids: tf.Tensor, positions: tf.Tensor, count: tf.Tensor) -> Any:
        """Returns probabilities and ids of the `count` likeliest tokens at [1, N] positions."""
        with inference_mode():
            logits = self._model.generator(
                ids, tf.zeros_like(ids), tf.ones_like(ids, tf.bool), positions)
        logits = tf.cast(logits, tf.float32)[:, :self._vocabulary.size]
        return tf.math.top_k(tf.nn.softmax(logits), count)


def load(name: str | os.PathLike[str]) -> Electra:
    """Returns the pre-trained networks of a checkpoint; raises UserError if it can't be read.

    Args:
        name: The directory of a run, a directory in Hugging Face's format, a TensorFlow 1
            checkpoint of Google's code, or the name of a model on the Hugging Face Hub,
            `owner/name` or `hf://owner/name@revision`. Encoders of BERT are read too.
    """
    return Electra(pretrained.read(storage.path(name), with_task=False))
