"""TensorFlow's stateless shuffle without TensorFlow, so that records come in the same order.

Philox-4x32-10 (Salmon et al., SC 2011) and the shuffle of Fisher and Yates, as TensorFlow 2.20's
CPU kernels have them; a test holds them to it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_SEED_KEY = 0x02461E293EC8F720
"""Under which TensorFlow turns a seed into a key and a counter."""
_MASK = (1 << 64) - 1


def words(key: int, counter: tuple[int, int], count: int) -> np.ndarray:
    """Returns the first words of a stream.

    Args:
        key: 64 bits.
        counter: its lower and its upper 64 bits; what is carried over from the lower ones counts.
        count: how many words.

    Returns:
        uint32 [count].
    """
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    low = np.uint64(counter[0]) + blocks
    high = np.uint64(counter[1]) + (low < blocks).astype(np.uint64)
    state = [low & _LOW, low >> _HALF, high & _LOW, high >> _HALF]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(_ROUNDS):
        first, second = state[0] * _MULTIPLIERS[0], state[2] * _MULTIPLIERS[1]
        state = [(second >> _HALF) ^ state[1] ^ np.uint64(keys[0]), second & _LOW,
                 (first >> _HALF) ^ state[3] ^ np.uint64(keys[1]), first & _LOW]
        keys = [(part + step) & 0xFFFFFFFF for part, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack(state, axis=1).reshape(-1)[:count].astype(np.uint32)


def shuffled(values: Sequence[Any], seed: tuple[int, int]) -> list[Any]:
    """Returns what `tf.random.experimental.stateless_shuffle` makes of values.

    Args:
        values: in their order.
        seed: two numbers of 64 bits.
    """
    scrambled = [int(word) for word in words(
        _SEED_KEY, (seed[0] & _MASK, seed[1] & _MASK), 4)]
    key, counter = (low | high << 32 for low, high in (scrambled[:2], scrambled[2:]))
    result, size = list(values), len(values)
    draws = words(key, (0, counter), max(0, size - 1)).tolist()
    for place, draw in enumerate(draws):
        other = place + draw % (size - place)
        result[place], result[other] = result[other], result[place]
    return result
