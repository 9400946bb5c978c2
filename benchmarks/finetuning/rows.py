"""What both sides of the fine-tuning benchmark compute: sizes, rates, and the file of examples.

Needs NumPy alone: both environments have it.
"""

import numpy as np

PAD_ID = 0
"""Id of [PAD] in BERT's vocabulary."""
CLASSES = 2
DROPOUT = 0.1
LEARNING_RATE, WEIGHT_DECAY, ADAM_EPSILON, CLIP_NORM = 3e-4, 0.01, 1e-6, 1.0
VOCAB_SIZE, EMBEDDING_SIZE, HIDDEN_SIZE, LAYERS, HEADS, INTERMEDIATE_SIZE = (
    30522, 128, 256, 12, 4, 1024)
"""ELECTRA-Small's."""


def write(path: str, ids: list[np.ndarray], labels: np.ndarray) -> None:
    """Writes examples: token ids, each of its own length, and classes."""
    np.savez(path, ids=np.concatenate(ids), labels=labels,
             ends=np.cumsum([len(one) for one in ids]))


def read(path: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Returns what `write` wrote."""
    with np.load(path) as data:
        return np.split(data["ids"], data["ends"][:-1]), data["labels"]
