"""Runs the directories of `onnx_directory`, from strings to answers, without TensorFlow.

    model = OnnxModel("cola_onnx")
    model.answer(["They drank the pub dry."])["label"]

The packages `onnxruntime` and `tokenizers` are needed.
"""

import dataclasses
import os
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from electra_tf.export.checksums import require_intact
from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError, shown
from electra_tf.platform.machine import usable_cores
from electra_tf.platform.storage import MIB

CONFIG_FILE, MODEL_FILE, TOKENIZER_FILE = "config.json", "model.onnx", "tokenizer.json"
Outputs = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, kw_only=True)
class OnnxConfig:
    """The entries of config.json that are read; the others are Hugging Face's."""

    __pydantic_config__ = strict_json.OPEN

    vocab_size: int
    type_vocab_size: int
    max_position_embeddings: int
    text_columns: tuple[str, ...]
    """Names of the one or two texts of a row."""
    max_seq_length: int
    """Tokens to which rows are cut, [CLS] and [SEP] included."""
    keeps_tail: bool
    """Keep the first and the last tokens of long texts, as `text.rows.first_and_last_values`."""
    id2label: dict[str, str]
    """Classes by index."""
    label_threshold: float | None
    """Probability from which on a text has a label, for tasks of several labels per text."""


class FastRowEncoder:
    """A converter of texts to the rows of `text.rows.RowEncoder`, by the library `tokenizers`."""

    def __init__(self, tokenizer_file: pathlib.Path, max_length: int, *, keeps_tail: bool = False):
        """Reads tokenizer.json; `max_length` and `keeps_tail` are as in `OnnxConfig`."""
        self._tokenizer = Tokenizer.from_file(str(tokenizer_file))
        self._max_length, self._keeps_tail = max_length, keeps_tail
        self._cls_id, self._sep_id, self._pad_id = map(
            self._tokenizer.token_to_id, ("[CLS]", "[SEP]", "[PAD]"))

    def encode(self, *columns: Sequence[str]) -> list[np.ndarray]:
        """Returns ids, segment ids and mask, int64 [B, L], of one or two columns of B texts.

        Of two texts the longer one is cut, of equal ones the second, until both fit.
        """
        rows = [self._row(*texts) for texts in zip(*columns, strict=True)]
        length = max([len(ids) for ids, _ in rows], default=1)
        ids = np.full([len(rows), length], self._pad_id, np.int64)
        segment_ids, mask = np.zeros_like(ids), np.zeros_like(ids)
        for index, (row, second) in enumerate(rows):
            ids[index, :len(row)], mask[index, :len(row)] = row, 1
            segment_ids[index, second:len(row)] = 1
        return [ids, segment_ids, mask]

    def _row(self, *texts: str) -> tuple[list[int], int]:
        """Returns the ids of one row, and the position where the second text begins."""
        try:
            pieces = [self._tokenizer.encode(text, add_special_tokens=False).ids
                      for text in texts]
        except TypeError as error:
            raise UserError(f"texts must be strings of Unicode. Received: {shown(texts)}"
                            ) from error
        limit = self._max_length - 1 - len(pieces)
        if len(pieces) == 1:
            first = self._shortened(pieces[0], limit)
            return [self._cls_id, *first, self._sep_id], len(first) + 2
        sizes = [len(part) for part in pieces]
        first = self._shortened(pieces[0], max(limit - sizes[1], limit - limit // 2))
        second = self._shortened(pieces[1], max(limit - sizes[0], limit // 2))
        return [self._cls_id, *first, self._sep_id, *second, self._sep_id], len(first) + 2

    def _shortened(self, pieces: list[int], limit: int) -> list[int]:
        if len(pieces) <= limit:
            return pieces
        head = -(-limit // 4) if self._keeps_tail else limit
        return pieces[:head] + pieces[len(pieces) - limit + head:]


class OnnxModel:
    """An exported network with its tokenizer; threads may call it concurrently."""

    def __init__(self, directory: str | os.PathLike[str], *, threads: int | None = None):
        """Reads a directory; `threads` compute one call, by default one per core.

        Raises `UserError` for missing or damaged files.
        """
        directory = pathlib.Path(directory)
        require_intact(directory, needed=True)
        self.config = strict_json.read(directory / CONFIG_FILE, OnnxConfig, max_bytes=4 * MIB)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or usable_cores()
        options.log_severity_level = 3
        # Threads that wait in a loop take the cores of other programs: 20 ms instead of 6.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.encode = FastRowEncoder(directory / TOKENIZER_FILE, self.config.max_seq_length,
                                     keeps_tail=self.config.keeps_tail).encode
        self._session = onnxruntime.InferenceSession(
            str(directory / MODEL_FILE), options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self._session.get_inputs()]
        self.outputs: Mapping[str, Sequence[str | int]] = {
            value.name: value.shape for value in self._session.get_outputs()}

    def score(self, ids: np.ndarray, segment_ids: np.ndarray, mask: np.ndarray) -> Outputs:
        """Returns the graph's outputs for integers [B, L]; `UserError` for wrong values."""
        config, arrays = self.config, (ids, segment_ids, mask)
        if ids.ndim != 2 or not ids.size or len({array.shape for array in arrays}) > 1:
            raise UserError(f"{', '.join(self.inputs)} must have one shape, [B, L], without a 0. "
                            f"Received: {', '.join(str(array.shape) for array in arrays)}")
        sizes = config.vocab_size, config.type_vocab_size, 2
        for name, array, size in zip(self.inputs, arrays, sizes, strict=True):
            if array.dtype.kind not in "iub" or array.min() < 0 or array.max() >= size:
                raise UserError(f"{name} must be integers from 0 to {size - 1}. Received: "
                                f"{array.dtype} from {array.min()} to {array.max()}")
        if ids.shape[1] > config.max_position_embeddings or not mask.any(axis=1).all():
            raise UserError("rows must have a 1 in attention_mask, and at most "
                            f"{config.max_position_embeddings} tokens. Received: {ids.shape[1]}")
        values = self._session.run(None, {
            name: array.astype(np.int64) for name, array in zip(self.inputs, arrays, strict=True)})
        return dict(zip(self.outputs, values, strict=True))

    @property
    def answers_texts(self) -> bool:
        """Returns True for classifiers, regressions and encoders; others have outputs of tokens."""
        outputs = self.outputs
        return not {"tokens", "score", "embedding"}.isdisjoint(outputs) or len(
            outputs.get("probabilities", ())) == 2

    def answer(self, *columns: Sequence[str]) -> Outputs:
        """Returns the answers to one or two columns of B texts, arrays [B, ...].

        A classifier answers `label`, its probability `score`, all `labels` and `probabilities`;
        with several labels per text the labels of each, `prediction`, padded with "". A regression
        answers `score`, sentence embeddings `embedding`, and an encoder `pooled`, the mean over all
        tokens, and `cls`.
        """
        config = self.config
        if len(columns) != len(config.text_columns) or any(
                isinstance(texts, str) for texts in columns):
            raise UserError(f"give {len(config.text_columns)} list(s) of texts. Received: "
                            f"{shown(columns)}")
        if not self.answers_texts:
            raise UserError("this model returns outputs of tokens; call encode, then score.")
        tokens = self.encode(*columns)
        outputs, labels = self.score(*tokens), np.array([*config.id2label.values()], object)
        if "tokens" in outputs:
            mask = tokens[2][:, :, np.newaxis].astype(np.float32)
            return {"pooled": (outputs["tokens"] * mask).sum(axis=1) / mask.sum(axis=1),
                    "cls": outputs["tokens"][:, 0]}
        if "probabilities" not in outputs:
            return outputs
        probabilities = outputs["probabilities"]
        answers = {"labels": np.tile(labels, [len(probabilities), 1]),
                   "probabilities": probabilities}
        if config.label_threshold is None:
            return answers | {"label": labels[probabilities.argmax(axis=1)],
                              "score": probabilities.max(axis=1)}
        predicted = [labels[row >= config.label_threshold] for row in probabilities]
        width = max(map(len, predicted))
        return answers | {"prediction": np.array(
            [[*row, *[""] * (width - len(row))] for row in predicted], object).reshape(-1, width)}
