"""Texts longer than a row: their first tokens, head and tail, or windows with pooled outputs."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.config.finetuning import LongTexts, TaskConfig, WindowPooling
from electra_tf.core.errors import UserError
from electra_tf.data.buckets import Row, RowBatch
from electra_tf.modeling import inference
from electra_tf.modeling.rng import Rng
from electra_tf.modeling.task_heads import TaskNetwork
from electra_tf.tasks.kinds import base
from electra_tf.tasks.task import Kind, TaskSpec
from electra_tf.text import rows
from electra_tf.text.rows import RowEncoder, Tokens

OUTCOMES: Mapping[LongTexts, str] = {
    LongTexts.TRUNCATE: "were cut",
    LongTexts.HEAD_TAIL: "were cut to their first and last tokens",
    LongTexts.WINDOWS: "were read in windows"}
"""Value of `--long_texts` -> words of a note on texts over the limit."""
KEEP: Mapping[LongTexts, rows.Keep] = {
    LongTexts.TRUNCATE: rows.first_values, LongTexts.HEAD_TAIL: rows.first_and_last_values}
_CHARACTERS = 20_000_000
"""Bound of the characters that one call reads in windows: 0.3 GB of tokens and indices."""


def require_consistent(spec: TaskSpec, config: TaskConfig) -> None:
    """Raises `UserError` for windows that leave gaps, or that can't be pooled as the task asks."""
    if config.long_texts is not LongTexts.WINDOWS:
        if config.doc_stride:
            raise UserError(f"--doc_stride={config.doc_stride} is for extractive QA and "
                            "--long_texts=windows; leave it out.")
        return
    largest = config.max_seq_length - 1 - len(spec.text_columns)
    if config.doc_stride > largest:
        raise UserError(
            f"--doc_stride={config.doc_stride} leaves gaps between windows of {largest} tokens "
            f"(--max_seq_length={config.max_seq_length} without [CLS] and [SEP]); it must be at "
            f"most {largest}. Half of --max_seq_length is the default.")
    if config.window_pooling is WindowPooling.LOG_ODDS and spec.kind is Kind.REGRESSION:
        raise UserError("--window_pooling=log_odds is for labels; a regression pools numbers by "
                        "mean or max.")


def encode(texts: Sequence[tuple[str, ...]], encoder: RowEncoder,
           config: TaskConfig) -> tuple[list[Row], np.ndarray]:
    """Returns a row without targets for each text or pair, and numbers of tokens, int32 [rows].

    With windows, the ids of a row are int32 [G, n] for its G windows, also if there is only one.
    """
    if config.long_texts is not LongTexts.WINDOWS:
        token_rows, sizes = rows.encode_texts(texts, encoder, KEEP[config.long_texts])
        return [Row(*row, {}) for row in token_rows], sizes
    # Windows of as many texts at a time as fit into memory; a text's windows are one row.
    encoded, lengths = [], [np.zeros(0, np.int32)]
    longest = max((sum(map(len, columns)) for columns in texts), default=0)
    chunk = max(1, min(rows.CHUNK, _CHARACTERS // max(1, longest)))
    for begin in range(0, len(texts), chunk):
        columns = zip(*texts[begin:begin + chunk], strict=True)
        tokens, example, counts = encoder.encode_in_windows(
            *map(tf.constant, columns), stride=config.doc_stride or config.max_seq_length // 2)
        ends = np.searchsorted(example, np.arange(1, len(counts)))
        for ids, segment_ids, padding_mask in zip(*(
                np.split(part.numpy(), ends) for part in tokens), strict=True):
            length = padding_mask.sum(axis=1).max()
            # Copies free the columns of padding.
            encoded.append(Row(ids[:, :length].copy(), segment_ids[:, :length].copy(), {},
                               padding_mask=padding_mask[:, :length].copy()))
        lengths.append(counts.numpy())
    return encoded, np.concatenate(lengths)


def limit_windows(encoded: list[Row], config: TaskConfig) -> tuple[list[Row], list[str]]:
    """Returns rows of at most `max_windows` windows, evenly spaced, and a note on the others."""
    if config.long_texts is not LongTexts.WINDOWS:
        return encoded, []
    counts = np.array([len(row.ids) for row in encoded])
    kept = [np.linspace(0, count - 1, min(count, config.max_windows)).round().astype(int)
            for count in counts]
    left_out = counts.sum() - sum(map(len, kept))
    return [dataclasses.replace(row, ids=row.ids[windows], segment_ids=row.segment_ids[windows],
                                padding_mask=row.padding_mask[windows])
            for row, windows in zip(encoded, kept, strict=True)], [
        f"{left_out:,} of {counts.sum():,} windows are left out: training reads "
        f"--max_windows={config.max_windows} of a text, evenly spaced (most: {counts.max():,})"
    ] if left_out else []


def head_outputs(objective: base.TaskObjective, model: TaskNetwork, batch: RowBatch,
                 dropout: Rng | None) -> tf.Tensor:
    """Returns the head's outputs for the vectors of texts, float32 [B, labels or 1].

    Those of an example's windows are pooled. `dropout` is None outside of training.
    """
    def run(tokens: Tokens, rng: Rng | None = None) -> tf.Tensor:
        return model.head(base.text_vectors(model.encoder, tokens, objective.config, rng), rng)

    if batch.ids.shape.rank == 2:
        return run(*base.as_rows(batch, dropout))
    if dropout is None:  # One window of every example at a time takes the memory of a short text.
        outputs = tf.map_fn(run, Tokens(*(tf.transpose(part, [1, 0, 2]) for part in (
            batch.ids, batch.segment_ids, batch.padding_mask))), fn_output_signature=tf.float32)
        outputs = tf.transpose(outputs, [1, 0, 2])
    else:
        flat = run(*base.as_rows(batch, dropout))
        outputs = tf.reshape(flat, [*batch.ids.shape[:2], flat.shape[-1]])
    # Windows have [CLS] and [SEP]; padding has one token.
    return pooled(outputs, batch.padding_mask[:, :, 1], objective.spec.kind,
                  objective.config.window_pooling)


def served_outputs(network: base.ServedNetwork, *columns: tf.Tensor) -> tf.Tensor:
    """Returns what `head_outputs` does for texts of any length, string [B] for each column."""
    config, row_encoder = network.config, network.row_encoder
    if config.long_texts is not LongTexts.WINDOWS:
        tokens, _ = row_encoder.encode_counted(*columns, keep=KEEP[config.long_texts])
        return network.head(network.first(tokens))
    tokens, example, lengths = row_encoder.encode_in_windows(
        *columns, stride=config.doc_stride or config.max_seq_length // 2)
    outputs = inference.map_in_chunks(
        lambda *part: network.head(network.first(Tokens(*part))), tokens,
        tf.TensorSpec([None, len(network.spec.labels) or 1], tf.float32))
    of_examples = tf.RaggedTensor.from_value_rowids(
        outputs, example, nrows=tf.size(lengths), validate=False)
    return pooled(of_examples.to_tensor(), tf.sequence_mask(of_examples.row_lengths()),
                  network.spec.kind, config.window_pooling)


def pooled(outputs: tf.Tensor, present: tf.Tensor, kind: Kind,
           pooling: WindowPooling) -> tf.Tensor:
    """Returns the outputs of texts, float32 [B, C], from those of windows, float32 [B, G, C].

    `present` is bool [B, G], False on padding. Softmax or sigmoid of the mean's result are the mean
    of the windows' probabilities. The outputs of a text with one window stay as they are.
    """
    present = (present | (tf.range(tf.shape(present)[1]) == 0))[:, :, tf.newaxis]
    count = tf.reduce_sum(tf.cast(present, tf.float32), axis=1)

    def log_mean(log_probabilities: tf.Tensor) -> tf.Tensor:
        masked = tf.where(present, log_probabilities, log_probabilities.dtype.min)
        return tf.reduce_logsumexp(masked, axis=1) - tf.math.log(count)

    if pooling is WindowPooling.MAX:
        result = tf.reduce_max(tf.where(present, outputs, outputs.dtype.min), axis=1)
    elif pooling is WindowPooling.LOG_ODDS or kind is Kind.REGRESSION:
        result = tf.reduce_sum(tf.where(present, outputs, 0.0), axis=1) / count
    elif kind is Kind.CLASSIFICATION:
        result = log_mean(tf.nn.log_softmax(outputs))
    else:  # logit(p) = log p - log(1 - p), of the mean p.
        log_sigmoid = tf.math.log_sigmoid
        result = log_mean(log_sigmoid(outputs)) - log_mean(log_sigmoid(-outputs))
    return tf.where(count == 1.0, tf.reduce_sum(outputs[:, :1], axis=1), result)
