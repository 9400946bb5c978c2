"""States what all systems of the pre-training benchmark have in common.

Standard library only: the environment of PyTorch has neither TensorFlow nor pydantic.
"""

import types

Workload = types.SimpleNamespace
"""A case: `batch` B, `length` L without padding, `predictions` N masked positions per example,
`threads` CPU cores, and the fields of an EncoderConfig for `discriminator` and `generator`."""

PAD_ID, CLS_ID, SEP_ID, MASK_ID = SPECIAL_IDS = 0, 101, 102, 103
"""Special entries of BERT's vocabulary, which are never masked and never replaced."""
FIRST_WORD_ID = 104
"""First id of synthetic text; the last one is V - 1."""
BATCHES = 16
"""Number of distinct synthetic batches, which steps use cyclically."""
MASK_TOKEN_FRACTION = 0.85
"""Fraction of the masked positions that read [MASK] (ELECTRA, section 3.1)."""
GENERATOR_WEIGHT, DISCRIMINATOR_WEIGHT = 1.0, 50.0
LEARNING_RATE, WEIGHT_DECAY, ADAM_EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0
