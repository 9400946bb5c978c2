"""The tokenizer as a layer of tf_keras."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from electra_tf.api.encoder import columns_of
from electra_tf.core.errors import UserError, shown
from electra_tf.core.settings import require, require_one_of
from electra_tf.text.normalization import Normalization, TextSettings
from electra_tf.text.rows import RowEncoder, Tokens, cut_notes, first_values, shortened
from electra_tf.text.vocabulary import Vocabulary


@tf_keras.utils.register_keras_serializable("electra_tf")
class ElectraTokenizer(tf_keras.layers.Layer):
    """A WordPiece tokenizer for `tf.data` and tf_keras models: texts in, ids for encoders out.

    It equals transformers' BertTokenizerFast, except that special tokens in texts are read as
    characters, that the [UNK] of a word of more than 100 characters has the offsets of the whole
    word, with an accent at its end, and that if both texts of a pair are cut to an odd number of
    tokens, the first one keeps the odd one, as in BERT's code. It is saved with the model around
    it. `electra.tokenizer` is that of networks.

    Args:
        vocabulary: WordPiece tokens in the order of their ids.
        normalization: Fields of `Normalization`.
        max_length: Tokens to which rows are cut, [CLS] and [SEP] included; the longer text of a
            pair is cut first. Outside of graphs a warning counts the rows that were cut.
        padding: "longest" pads to the longest row of a batch, "max_length" to this length.
        **options: Name and other options of `tf_keras.layers.Layer`.

    Examples:
        >>> electra.tokenizer(["A text.", "Another text."])["input_ids"].dtype
        tf.int32
    """

    def __init__(self, vocabulary: Sequence[str], normalization: Mapping[str, Any], *,
                 max_length: int = 512, padding: str = "longest", **options: Any):
        super().__init__(**options)
        require(max_length >= 3, "max_length", "3 or more", max_length)
        require_one_of(("longest", "max_length"), "padding", padding)
        self.max_length, self.padding = max_length, padding
        self._text = TextSettings(vocabulary=Vocabulary(tuple(vocabulary)),
                                  normalization=Normalization(**normalization))
        self._rows = RowEncoder(self._text, max_length)
        self.built = True

    @tf.autograph.experimental.do_not_convert  # AutoGraph would change the type of errors.
    def call(self, inputs: Any, training: bool | None = None, *,
             return_offsets_mapping: bool = False) -> dict[str, tf.Tensor]:
        """Tokenizes texts.

        Args:
            inputs: Texts, string [B], or pairs, as for `ElectraEncoder.call`.
            training: Has no effect; Keras gives it to all layers.
            return_offsets_mapping: True also returns the characters of every token.

        Returns:
            "input_ids", "token_type_ids" and "attention_mask", int32 [B, L]; "offset_mapping",
            int32 [B, L, 2], has the first character of each token in its text, and one past its
            last; 0 for special tokens.
        """
        # Rows of the batch's longest text.
        columns = self._columns(inputs)
        if return_offsets_mapping:
            tokens, lengths, offsets = self._encode_with_offsets(columns)
        else:
            tokens, lengths = self._rows.encode_counted(*columns)
        if tf.executing_eagerly():
            for note in cut_notes(lengths.numpy(), self.max_length, "max_length"):
                warnings.warn(note, stacklevel=2)
        outputs = {"input_ids": tokens.ids, "token_type_ids": tokens.segment_ids,
                   "attention_mask": tf.cast(tokens.padding_mask, tf.int32)}
        outputs |= {"offset_mapping": offsets} if return_offsets_mapping else {}
        # The same rows with `max_length` columns.
        if self.padding == "max_length":
            rest = self.max_length - tf.shape(tokens.ids)[1]
            outputs = {name: tf.ensure_shape(tf.pad(
                values, [[0, 0], [0, rest], [0, 0]][:values.shape.rank], constant_values=(
                    self._text.vocabulary.pad_id if name == "input_ids" else 0)),
                [None, self.max_length, 2][:values.shape.rank])
                for name, values in outputs.items()}
        return outputs

    def tokenize(self, text: str) -> list[str]:
        """Returns the tokens of a text without special ones; "##" continues a word."""
        [ids] = self._rows.tokenizer.tokenize(self._columns([text])[0]).to_list()
        return self.convert_ids_to_tokens(ids)

    def convert_ids_to_tokens(self, ids: Sequence[int]) -> list[str]:
        """Returns the tokens of ids."""
        tokens = self._text.vocabulary.tokens
        values = np.asarray(ids, np.int64 if len(ids) == 0 else None)
        if values.ndim != 1 or values.dtype.kind not in "iu" or not all(
                0 <= index < len(tokens) for index in values):
            raise UserError(f"ids must be a list of integers from 0 to {len(tokens) - 1}. "
                            f"Received: {shown(ids)}")
        return [tokens[index] for index in values]

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of an equal layer, for `from_config`."""
        return super().get_config() | {
            "vocabulary": list(self._text.vocabulary.tokens),
            "normalization": dataclasses.asdict(self._text.normalization),
            "max_length": self.max_length, "padding": self.padding}

    def _columns(self, inputs: Any) -> Sequence[tf.Tensor]:
        columns = columns_of(inputs, self._text.vocabulary.pad_id)
        if columns[0].dtype != tf.string:
            raise UserError(f"texts must be strings. Received: {columns[0].dtype.name} "
                            f"{columns[0].shape}")
        return columns

    def _encode_with_offsets(
            self, columns: Sequence[tf.Tensor]) -> tuple[Tokens, tf.Tensor, tf.Tensor]:
        """Returns rows, numbers of tokens before the cut, and the characters of every token."""
        special = 1 + len(columns)
        # The offsets of the tokenizer count bytes of valid UTF-8.
        columns = [tf.strings.unicode_transcode(column, "UTF-8", "UTF-8", errors="ignore")
                   for column in columns]
        unit = None if self._text.normalization.nfc else "."
        pieces = [self._rows.tokenizer.tokenize_with_offsets(column, unit) for column in columns]
        lengths = [tf.cast(part.ids.row_lengths(), tf.int32) for part in pieces]
        limits = shortened(lengths, self.max_length - special)
        cut = [[first_values(values, limit) for values in part]
               for part, limit in zip(pieces, limits, strict=True)]
        tokens = self._rows.rows([ids for ids, *_ in cut])

        # The characters of all pieces, [B, (pieces), 2], at the columns of the row that hold text.
        characters = tf.concat([tf.stack([
            _characters_before(text, values) for values in bounds], axis=-1)
            for text, (_, *bounds) in zip(columns, cut, strict=True)], axis=1)
        vocabulary = self._text.vocabulary  # No text gives the ids of [CLS] and [SEP].
        is_text = tokens.padding_mask & (tokens.ids != vocabulary.cls_id) & (
            tokens.ids != vocabulary.sep_id)
        offsets = tf.scatter_nd(tf.where(is_text), characters.flat_values, tf.concat(
            [tf.shape(tokens.ids, tf.int64), [2]], axis=0))
        return tokens, tf.add_n(lengths) + special, offsets


def _characters_before(texts: tf.Tensor, offsets: tf.RaggedTensor) -> tf.RaggedTensor:
    """Maps offsets in bytes of texts, string [N], to characters, int32 [N, (pieces)]."""
    text = tf.gather(texts, offsets.value_rowids())
    return offsets.with_flat_values(tf.strings.length(tf.strings.substr(
        text, tf.zeros_like(offsets.flat_values), offsets.flat_values), unit="UTF8_CHAR"))
