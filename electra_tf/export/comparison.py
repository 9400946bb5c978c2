"""Compares the outputs of exported files for token ids with those of the trained network."""

import enum
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from electra_tf.core.errors import UserError
from electra_tf.export.saved_model import probes
from electra_tf.export.servable import TOKEN_INPUTS, Servable

Answers = Mapping[str, np.ndarray]


class Quantization(enum.StrEnum):
    """Storage of weights; arithmetic is float32 except for matmuls of `DYNAMIC_INT8`."""

    NONE = "none"
    FLOAT16 = "float16"
    DYNAMIC_INT8 = "dynamic_int8"


def probe_tokens(model: Servable) -> list[np.ndarray]:
    """Returns ids, segment ids and mask, int32 [B, L], of the probes' texts."""
    all_texts, _ = probes(model.columns)
    rows = model.row_encoder.encode(*map(tf.constant, all_texts.values()))
    return [tf.cast(part, tf.int32).numpy() for part in rows]


def network_function(model: Servable) -> Callable[[Sequence[np.ndarray]], Answers]:
    """Returns the trained network as a function of ids, segment ids and mask, int32 [B, L]."""
    score = model.for_token_ids([None, None])

    def run_network(inputs: Sequence[np.ndarray]) -> Answers:
        named = zip(TOKEN_INPUTS, map(tf.constant, inputs), strict=True)
        return {name: value.numpy() for name, value in score(**dict(named)).items()}

    return run_network


def compare(file_answers: Answers, run_network: Callable[[Sequence[np.ndarray]], Answers],
            tokens: Sequence[np.ndarray], tolerance: float) -> float:
    """Compares a file's answers to padded rows with a network's to each row alone.

    `run_network` maps ids, segment ids and mask, int32 [B, L] each as `tokens`, to outputs. Returns
    the largest difference, relative for numbers above 1; raises `UserError` above the tolerance.
    """
    max_difference = 0.0
    # Each row alone, without padding, [1, size], beside the same row of the padded batch.
    for row, size in enumerate(tokens[2].sum(axis=1)):
        answers = run_network([part[row:row + 1, :size] for part in tokens])
        padded = _comparable({name: file_answers[name][row:row + 1] for name in answers},
                             tokens[0].shape[1])
        for name, expected in _comparable(answers, size).items():
            # max |a - e| / max(1, |e|) over the positions that both have.
            actual = padded[name][tuple(slice(end) for end in expected.shape)]
            scale = np.maximum(1.0, np.abs(expected))
            difference = float(np.max(np.abs(actual - expected) / scale))
            if not difference <= tolerance:
                raise UserError(f"{name} is {difference:.1e} away from the trained network, more "
                                f"than {tolerance:g}; nothing was exported.")
            max_difference = max(max_difference, difference)
    return max_difference


def _comparable(answers: Answers, length: int) -> Answers:
    """Replaces beams, which can change places if equally likely, by probabilities of spans."""
    if "start_index" not in answers:
        return answers
    # p(start, end) = exp(ln p(start) + ln p(end | start)), [B, L, L], zero beyond the beams.
    rows = np.arange(len(answers["start_index"]))[:, np.newaxis, np.newaxis]
    spans = np.zeros([len(rows), length, length])
    spans[rows, answers["start_index"][:, :, np.newaxis], answers["end_index"]] = np.exp(
        answers["start_log_probs"][:, :, np.newaxis] + answers["end_log_probs"])
    impossible = {key: value for key, value in answers.items() if key == "impossible"}
    return {"spans": spans} | impossible
