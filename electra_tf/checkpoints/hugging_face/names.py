"""What Hugging Face calls a weight, and how it turns it: one to one with our names."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from electra_tf.checkpoints.hugging_face.files import WEIGHTS_FILE
from electra_tf.checkpoints.weights import Weights
from electra_tf.platform.errors import UserError
from electra_tf.platform.storage import Path

_RENAMED = {"generator_predictions/output_bias": "generator_lm_head.bias",
            "discriminator_predictions/dense_1/kernel":
                "discriminator_predictions.dense_prediction.weight",
            "discriminator_predictions/dense_1/bias":
                "discriminator_predictions.dense_prediction.bias"}
IGNORED = frozenset({"electra.embeddings.position_ids", "generator_lm_head.weight"})
"""A buffer of old releases, and the tied table, where it is written twice."""


def by_theirs(shapes: Iterable[str]) -> dict[str, str]:
    """Returns their name -> ours, of weights by our names."""
    return {theirs_of(name): name for name in shapes}


def theirs_of(name: str) -> str:
    """Returns what Hugging Face calls a weight.

    >>> theirs_of("generator/encoder/layer_3/output/dense/kernel")
    'electra.encoder.layer.3.output.dense.weight'
    """
    if name in _RENAMED:
        return _RENAMED[name]
    path = re.sub(r"/layer_(\d+)/", r"/layer/\1/", re.sub("^generator/", "electra/", name))
    path = re.sub("/(kernel|gamma)$", "/weight", re.sub("/beta$", "/bias", path))
    return (f"{path}/weight" if path.endswith("_embeddings") else path).replace("/", ".")


def by_their_names(weights: Weights, names: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Returns weights as they have them; `names`: theirs -> ours."""
    return {theirs: turned(ours, weights[ours]) for theirs, ours in names.items()}


def turned(name: str, value: np.ndarray) -> np.ndarray:
    """Returns a weight, named as ours, in the other form: PyTorch's kernels are [out, in]."""
    return value.T if name.endswith("/kernel") else value


def by_our_names(found: Weights, names: Mapping[str, str],
                 directory: Path) -> dict[str, np.ndarray]:
    """Returns weights as we have them, in float32.

    Args:
        found: by their names.
        names: theirs -> ours.
        directory: where they come from, for errors.

    Raises:
        UserError: names that are missing or left over.
    """
    path = directory / WEIGHTS_FILE
    unknown = sorted(found.keys() - names.keys() - IGNORED)
    if unknown:
        raise UserError(f"{path} has no place in ELECTRA for {len(unknown)} weights: "
                        f"{', '.join(unknown)}.")
    missing = sorted(names.keys() - found.keys())
    if missing:
        raise UserError(f"{path} lacks {len(missing)} weights: {', '.join(missing)}.")
    return {ours: turned(ours, found[theirs]).astype(np.float32)
            for theirs, ours in names.items()}
