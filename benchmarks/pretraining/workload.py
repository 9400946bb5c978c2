"""Describes one training step in plain numbers for all workers, and runs their turns.

Standard library only: the environment of PyTorch has neither TensorFlow nor pydantic.

Shapes: B batch, L length, N masked positions, V vocabulary, E embedding, H hidden.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

from benchmarks.harness.worker import Ready

PAD_ID, CLS_ID, SEP_ID, MASK_ID = 0, 101, 102, 103
"""Special entries of BERT's vocabulary."""
FIRST_WORD_ID = 104
"""First id of synthetic text; the last one is V - 1."""
BATCHES = 16
"""Number of distinct synthetic batches, which steps use cyclically."""
MASK_TOKEN_FRACTION = 0.85
"""Fraction of the masked positions that read [MASK] (ELECTRA, section 3.1)."""
GENERATOR_WEIGHT, DISCRIMINATOR_WEIGHT = 1.0, 50.0
DROPOUT = 0.1
"""Dropout rate of hidden states and of attention weights, in both networks."""
MAX_POSITIONS, SEGMENTS = 512, 2
LEARNING_RATE, WEIGHT_DECAY, ADAM_EPSILON, CLIP_NORM = 1e-4, 0.01, 1e-6, 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderSizes:
    """Sizes of one Transformer encoder."""

    embedding_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workload:
    """One case: the two networks and the batch."""

    case: str
    batch: int
    """B."""
    length: int
    """L, without padding."""
    predictions: int
    """N, masked positions per example."""
    vocab_size: int
    discriminator: EncoderSizes
    generator: EncoderSizes
    threads: int
    """CPU cores to use."""
    mask_id: int = MASK_ID
    special_ids: tuple[int, ...] = (PAD_ID, CLS_ID, SEP_ID, MASK_ID)
    """Ids that are never masked and never replaced."""

    @property
    def tokens(self) -> int:
        """Tokens per step: B * L."""
        return self.batch * self.length


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Number type, compiler and device of a system."""

    precision: str
    """"float32" or "bfloat16"."""
    compiler: str = "off"
    """"off", "on", "graphs" (compiled, with CUDA graphs) or "auto", the system's own choice."""
    device: str = "cpu"
    """"cpu" or "cuda", the first GPU."""


def workload_from(fields: Mapping[str, Any]) -> Workload:
    """Rebuilds a workload from its `dataclasses.asdict`."""
    return Workload(**{**fields, **{name: EncoderSizes(**fields[name])
                                    for name in ("discriminator", "generator")}})


Step = Callable[[], SupportsFloat | None]
"""Runs one training step; returns its loss, or None if no network is trained.

On an accelerator the step may still run: `float` of its loss waits for it.
"""


def steps_of(build: Callable[[], Step]) -> Callable[[int], dict[str, float | None]]:
    """Returns a turn of several steps; the first one builds the model, traces and compiles."""
    step: Step | None = None

    def turn(steps: int) -> dict[str, float | None]:
        nonlocal step
        step = step or build()
        for _ in range(steps):
            loss = step()
        return {"loss": None if loss is None else float(loss)}

    return turn


def takes_workload(prepare: Callable[..., Ready]) -> Callable[..., Ready]:
    """Decorates a worker's `prepare`, which takes a workload, options and other fields."""
    return lambda workload, options, **fields: prepare(
        workload_from(workload), StepOptions(**options), **fields)
