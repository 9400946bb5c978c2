"""Runs the directories of `onnx_graph.export`, from strings to answers, without TensorFlow.

    model = OnnxModel("cola_onnx")
    model.answer(["They drank the pub dry."])["label"]
"""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from electra_tf.core.errors import UserError, shown
from electra_tf.core.machine import usable_cores
from electra_tf.export.checksums import require_intact

CONFIG_FILE, MODEL_FILE, TOKENIZER_FILE = "config.json", "model.onnx", "tokenizer.json"


class OnnxModel:
    """An exported network with its tokenizer; threads may call it concurrently."""

    def __init__(self, directory: str | os.PathLike[str], *, threads: int | None = None):
        """Reads a directory; `threads` compute one call, by default one per core."""
        directory = pathlib.Path(directory)
        require_intact(directory, needed=True)
        self.config: dict[str, Any] = json.loads((directory / CONFIG_FILE).read_bytes())
        self._tokenizer = Tokenizer.from_file(str(directory / TOKENIZER_FILE))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or usable_cores()
        options.log_severity_level = 3
        # Threads that wait in a loop take the cores of other programs: 20 ms instead of 6.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            str(directory / MODEL_FILE), options, providers=["CPUExecutionProvider"])
        self.inputs, self.outputs = ([value.name for value in values] for values in (
            self._session.get_inputs(), self._session.get_outputs()))

    def encode(self, *columns: Sequence[str]) -> list[np.ndarray]:
        """Returns ids, segment ids and mask, int64 [B, L], of one or two columns of B texts."""
        # Ids of every text, cut to fit a row as `text.rows.shortened` does.
        cls_id, sep_id, pad_id = map(self._tokenizer.token_to_id, ("[CLS]", "[SEP]", "[PAD]"))
        limit, rows = self.config["max_seq_length"] - 1 - len(columns), []
        for texts in zip(*columns, strict=True):
            try:
                parts = [self._tokenizer.encode(text, add_special_tokens=False).ids
                         for text in texts]
            except TypeError as error:
                raise UserError(f"texts must be strings. Received: {shown(texts)}") from error
            limits = [limit] if len(parts) == 1 else [  # As `text.rows.shortened`.
                max(limit - len(parts[1]), limit - limit // 2),
                max(limit - len(parts[0]), limit // 2)]
            first, *second = (
                [*self._cut(*part), sep_id] for part in zip(parts, limits, strict=True))
            rows.append(([cls_id, *first], sum(second, [])))

        # Rows padded to the longest: [CLS] first [SEP] second [SEP].
        length = max((len(first) + len(second) for first, second in rows), default=1)
        ids = np.full([len(rows), length], pad_id, np.int64)
        segment_ids, mask = np.zeros_like(ids), np.zeros_like(ids)
        for index, (first, second) in enumerate(rows):
            size = len(first) + len(second)
            # Segment 1 is the second text with its [SEP]; padding has segment 0.
            ids[index, :size], mask[index, :size] = first + second, 1
            segment_ids[index, len(first):size] = 1
        return [ids, segment_ids, mask]

    def _cut(self, ids: list[int], limit: int) -> list[int]:
        # The first tokens, or a quarter from the start and the rest from the end.
        head = -(-limit // 4) if self.config["keeps_tail"] else limit
        return ids if len(ids) <= limit else ids[:head] + ids[len(ids) - limit + head:]

    def score(self, *tokens: np.ndarray) -> dict[str, np.ndarray]:
        """Returns the graph's outputs for ids, segment ids and mask, integers [B, L]."""
        sizes = self.config["vocab_size"], self.config["type_vocab_size"], 2
        for name, part, size in zip(self.inputs, tokens, sizes, strict=True):
            if not (part.size and part.dtype.kind in "iub"
                    and 0 <= part.min() <= part.max() < size):
                raise UserError(f"{name} must be integers from 0 to {size - 1}. Received: "
                                f"{shown(part)}")
        positions = self.config["max_position_embeddings"]
        if tokens[0].shape[1] > positions or not tokens[2].any(axis=1).all():
            raise UserError("rows must have a 1 in attention_mask, and at most "
                            f"{positions} tokens. Received: {tokens[0].shape[1]}")
        return dict(zip(self.outputs, self._session.run(None, {
            name: array.astype(np.int64) for name, array in zip(self.inputs, tokens, strict=True)
        }), strict=True))

    def answer(self, *columns: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns answers to one or two columns of B texts: the outputs of a SavedModel."""
        if len(columns) != len(self.config["text_columns"]) or any(
                isinstance(texts, str) for texts in columns):
            raise UserError(f"give {len(self.config['text_columns'])} list(s) of texts. Received: "
                            f"{shown(columns)}")
        # An encoder's vectors, then a regression's score, then labels.
        tokens = self.encode(*columns)
        outputs = self.score(*tokens)
        if "tokens" in outputs:
            mask = tokens[2][:, :, np.newaxis].astype(np.float32)
            return {"pooled": (outputs["tokens"] * mask).sum(axis=1) / mask.sum(axis=1),
                    "cls": outputs["tokens"][:, 0]}
        if "score" in outputs or "embedding" in outputs:
            return outputs
        if (probabilities := outputs.get("probabilities", np.empty(0))).ndim != 2:
            raise UserError("this model returns outputs of tokens; call encode, then score.")

        # The most likely label, or all those whose probability reaches the threshold.
        labels = np.array([*self.config["id2label"].values()], object)
        answers = {"labels": np.tile(labels, [len(probabilities), 1]),
                   "probabilities": probabilities}
        if (threshold := self.config["label_threshold"]) is None:
            return answers | {"label": labels[probabilities.argmax(axis=1)],
                              "score": probabilities.max(axis=1)}
        predicted = [labels[row >= threshold].tolist() for row in probabilities]
        # Rows of as many names as the longest, string [B, W], filled up with "".
        width = max(map(len, predicted))
        return answers | {"prediction": np.array(
            [row + [""] * (width - len(row)) for row in predicted], object).reshape(-1, width)}
