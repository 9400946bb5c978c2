"""The dense matrix multiplications of one training step: the machine's limit at these shapes.

Attention's two batched multiplications per head are left out: they run slower than dense ones, and
the throughput measured without them is a higher limit. Standard library only.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.pretraining.workload import Encoder, Step, Workload

FORMS = 3
"""x W forward; dy W^T and x^T dy backward: each 2 m k n FLOPs."""
_MOST_COPIES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Matmul:
    """[rows, inputs] x [inputs, outputs], `count` times in a step, in all three forms."""

    rows: int
    inputs: int
    outputs: int
    count: int = 1

    @property
    def flops(self) -> int:
        """FLOPs of all `count` in their three forms."""
        return FORMS * 2 * self.rows * self.inputs * self.outputs * self.count

    @property
    def copies(self) -> int:
        """Number with operands of their own, run side by side: a divisor of `count`."""
        return max(n for n in range(1, _MOST_COPIES + 1) if self.count % n == 0)


def step_matmuls(workload: Workload) -> list[Matmul]:
    """Returns the matrix multiplications of both encoders and both heads."""
    tokens, hidden = workload.tokens, workload.discriminator.hidden_size
    masked, generator = workload.batch * workload.predictions, workload.generator
    embedding = generator.embedding_size
    return [
        *_of_encoder(workload.discriminator, tokens),
        Matmul(rows=tokens, inputs=hidden, outputs=hidden),
        Matmul(rows=tokens, inputs=hidden, outputs=1),
        *_of_encoder(generator, tokens),
        Matmul(rows=masked, inputs=generator.hidden_size, outputs=embedding),
        Matmul(rows=masked, inputs=embedding, outputs=workload.vocab_size)]


def step_flops(workload: Workload) -> int:
    """Returns the FLOPs of all matrix multiplications of one step."""
    return sum(matmul.flops for matmul in step_matmuls(workload))


def step_of(workload: Workload, operand: Callable[[int, int, int], Any],
            three_forms: Callable[[Sequence, Sequence, Sequence], Callable[[], object]]) -> Step:
    """Returns a step that runs every matrix multiplication `count` times.

    Args:
        workload: the step's shapes.
        operand: maps a seed, rows and columns to random numbers.
        three_forms: maps as many x, W and dy to a function that multiplies them in all forms.
    """
    calls = []
    for one in step_matmuls(workload):
        shapes = (one.rows, one.inputs), (one.inputs, one.outputs), (one.rows, one.outputs)
        call = three_forms(*([operand(copy, *shape) for copy in range(one.copies)]
                             for shape in shapes))
        calls += [call] * (one.count // one.copies)

    def step() -> None:
        for call in calls:
            call()

    return step


def _of_encoder(encoder: Encoder, rows: int) -> list[Matmul]:
    hidden, inner, layers = encoder.hidden_size, encoder.intermediate_size, encoder.num_layers
    found = [
        # Query, key, value, attention output.
        Matmul(rows=rows, inputs=hidden, outputs=hidden, count=4 * layers),
        Matmul(rows=rows, inputs=hidden, outputs=inner, count=layers),
        Matmul(rows=rows, inputs=inner, outputs=hidden, count=layers)]
    if encoder.embedding_size != hidden:
        found.append(Matmul(rows=rows, inputs=encoder.embedding_size, outputs=hidden))
    return found
