"""Compares the outputs of exported models for some texts with those of the trained network."""

import enum
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from electra_tf.core.errors import UserError
from electra_tf.export.servable import TOKEN_INPUTS, Outputs, Servable

PROBES = (
    ("The committee approved the new budget on Tuesday.",
     "In May the harbour of Oslo freezes rarely, the pilots said."),
    ("Good.", "It rained."),
    ("Café Müller's 3rd opening -- what a dreadful, wonderful evening it was!",
     "Pina Bausch first showed Café Müller in Wuppertal in May 1978; six people danced in it. "
     "The chairs, of which there were many, were hers."),
    ("", "Nothing stands in the other column."),
)
"""Pairs of texts of different lengths. Tasks with one text take the first of each pair."""


class Quantization(enum.StrEnum):
    """Storage of weights; arithmetic is float32 except for matmuls of `DYNAMIC_INT8`."""

    NONE = "none"
    FLOAT16 = "float16"
    DYNAMIC_INT8 = "dynamic_int8"


def probes(columns: Sequence[str]) -> dict[str, list[str]]:
    """Returns the texts of `PROBES` by column."""
    return {name: [pair[index] for pair in PROBES] for index, name in enumerate(columns)}


def probe_tokens(model: Servable) -> list[np.ndarray]:
    """Returns ids, segment ids and mask, int32 [B, L], of the probes' texts."""
    rows = model.row_encoder.encode(*map(tf.constant, probes(model.columns).values()))
    return [tf.cast(part, tf.int32).numpy() for part in rows]


def network_outputs(model: Servable, tokens: Sequence[np.ndarray]) -> Outputs:
    """Returns the trained network's outputs for ids, segment ids and mask, int32 [B, L]."""
    return model.for_token_ids([None, None])(**dict(
        zip(TOKEN_INPUTS, map(tf.constant, tokens), strict=True)))


def compare(outputs: Outputs, expected: Outputs, tolerance: float, *,
            mask: np.ndarray | None = None, only_numbers: bool = False) -> float:
    """Compares a file's outputs with a network's; texts must be equal, unless `only_numbers`.

    Positions with 0 in the mask [B, L] have no effect. Returns the largest difference, relative for
    numbers above 1; raises `UserError` above the tolerance.
    """
    outputs, expected = ({name: np.asarray(values) for name, values in part.items()}
                         for part in (outputs, expected))
    if "start_index" in outputs:
        length = 1 + max(beams[name].max() for beams in (outputs, expected)
                         for name in ("start_index", "end_index"))
        outputs, expected = (_span_probabilities(beams, length) for beams in (outputs, expected))
    max_difference = 0.0
    for name, values in outputs.items():
        # max |a - e| / max(1, |e|).
        difference, trained = np.inf, expected[name]
        if mask is not None and values.shape[:2] == trained.shape[:2] == mask.shape:
            values, trained = values[mask > 0], trained[mask > 0]
        if values.shape == trained.shape and np.issubdtype(values.dtype, np.floating):
            difference = float(np.max(
                np.abs(values - trained) / np.maximum(1.0, np.abs(trained)), initial=0.0))
        elif values.shape == trained.shape and (only_numbers or np.array_equal(values, trained)):
            difference = 0.0
        if not difference <= tolerance:
            raise UserError(f"the exported model's {name} is {difference:.1e} away from the "
                            f"trained network, more than {tolerance:g}; nothing was exported.")
        max_difference = max(max_difference, difference)
    return max_difference


def _span_probabilities(beams: Outputs, length: int) -> Outputs:
    """Replaces beams, which can change places if equally likely, by probabilities of spans."""
    # p(start, end) = exp(ln p(start) + ln p(end | start)), [B, L, L], zero beyond the beams.
    rows = np.arange(len(beams["start_index"]))[:, np.newaxis, np.newaxis]
    spans = np.zeros([len(rows), length, length])
    spans[rows, beams["start_index"][:, :, np.newaxis], beams["end_index"]] = np.exp(
        beams["start_log_probs"][:, :, np.newaxis] + beams["end_log_probs"])
    return {"spans": spans} | {name: beams[name] for name in beams if name == "impossible"}
