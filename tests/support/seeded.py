"""Weights that are a function of their names, and a batch: PyTorch's side can make them too."""

import zlib

import numpy as np

VOCAB_SIZE, LENGTHS = 40, (12, 9, 5)


def weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Returns float32 numbers of a size that keeps hidden vectors and logits around 1."""
    numbers = np.random.default_rng(zlib.crc32(name.encode()))
    drawn = numbers.normal(scale=0.2, size=shape)
    if name.endswith(("LayerNorm.weight", "LayerNorm/gamma")):
        drawn += 1.0
    return drawn.astype(np.float32)


def batch() -> dict[str, np.ndarray]:
    """Returns ids, segments and what isn't padding: int64 [3, 12], by transformers' names."""
    numbers = np.random.default_rng(0)
    padding_mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, np.newaxis]
    second = np.arange(max(LENGTHS)) >= np.array(LENGTHS)[:, np.newaxis] // 2
    return {"input_ids": numbers.integers(1, VOCAB_SIZE, padding_mask.shape) * padding_mask,
            "token_type_ids": (second & padding_mask).astype(np.int64),
            "attention_mask": padding_mask.astype(np.int64)}
