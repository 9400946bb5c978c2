"""Hugging Face's RoFormer (Su et al., 2021), the class of encoders with rotary positions.

Its layers are ELECTRA's, but the head of replaced token detection is missing, some weights have
other names, and a head's pairs of dimensions are adjacent: (x_0, x_1), (x_2, x_3), ...; ours are
(x_j, x_{j + D/2}).
"""

import re

import numpy as np

from electra_tf.checkpoints.weights import Weights
from electra_tf.config.model import EncoderConfig
from electra_tf.core.errors import UserError
from electra_tf.modeling.rotary import frequencies

BASE = 10_000.0
"""Base of RoFormer's angles, which is no entry of its config.json."""
_ANGLES = "encoder.embed_positions.weight"
"""A constant table that files of weights may hold, sines and cosines of all angles."""
_NAMES = {  # RoFormer's -> ELECTRA's, by the beginnings of names.
    "roformer.": "electra.",
    "cls.predictions.transform.": "generator_predictions.",
    "cls.predictions.bias": "generator_lm_head.bias",
    "cls.predictions.decoder.weight": "generator_lm_head.weight",
}
_ROTATED = re.compile(r"\.attention\.self\.(query|key)\.(weight|bias)$")


def electra_class(architecture: str) -> str:
    """Returns ELECTRA's class with the same layers as a class of RoFormer."""
    return re.sub("^RoFormer", "Electra", architecture)


def to_electra(tensors: Weights, num_heads: int, source: str) -> Weights:
    """Renames weights and reorders pairs of queries and keys; `UserError` for other angles."""
    weights: Weights = {}
    for name, value in tensors.items():
        if name.endswith(_ANGLES):
            if not np.allclose(value, _angle_table(*value.shape), atol=1e-3):
                raise UserError(f"{source}: {name} isn't RoFormer's table of sines and cosines.")
            continue
        if name == "cls.predictions.decoder.bias":  # Tied to the head's own.
            if not np.array_equal(value, tensors.get("cls.predictions.bias", value)):
                raise UserError(f"{source}: {name} differs from cls.predictions.bias.")
            continue
        weights[_renamed(name, _NAMES)] = _reordered(name, value, [num_heads, -1, 2])
    return weights


def from_electra(tensors: Weights, encoder: EncoderConfig) -> Weights:
    """Does the reverse for all weights of a network; `UserError` for another base of the angles."""
    if encoder.rotary_base != BASE:
        raise UserError(f"RoFormer's angles have the base {BASE:g}; this model has "
                        f"model.rotary_base={encoder.rotary_base:g}. Use --to_format=run.")
    # Bare encoders have no prefix in both.
    names = {electra: roformer for roformer, electra in _NAMES.items()}
    weights = {_renamed(name, names): _reordered(name, value, [encoder.num_heads, 2, -1])
               for name, value in tensors.items()}
    angles = _angle_table(encoder.max_position_embeddings, encoder.hidden_size // encoder.num_heads)
    return {**weights, f"roformer.{_ANGLES}": angles.astype(np.float32)}


def _renamed(name: str, beginnings: dict[str, str]) -> str:
    for old, new in beginnings.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def _reordered(name: str, value: np.ndarray, pairs: list[int]) -> np.ndarray:
    """Transposes the rows of queries and keys, of the shape `pairs`: [A, D / 2, 2] or reverse."""
    if not _ROTATED.search(name):
        return value
    return value.reshape(*pairs, *value.shape[1:]).swapaxes(1, 2).reshape(value.shape)


def _angle_table(positions: int, head_size: int) -> np.ndarray:
    """Returns the sines, then the cosines of all angles, [positions, head_size]."""
    angles = np.arange(positions)[:, np.newaxis] * frequencies(head_size, BASE)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
