"""Runs the dense matrix multiplications of one training step alone, the machine's limit.

Attention's two batched multiplications per head are left out: they run slower than dense ones, and
the throughput measured without them is a higher limit. Runs in the environment of `make peers`.
"""

import math
from typing import Any

from benchmarks.pretraining import system
from benchmarks.pretraining.system import Workload


def step_flops(work: Workload) -> int:
    """Returns the FLOPs of one step: x W forward, dy W^T and x^T dy backward, each 2 m k n."""
    return sum(3 * 2 * math.prod(matmul) for matmul in work.matmuls)


def prepare(work: Workload, precision: str) -> system.Step:
    """Returns the matrix multiplications of a step in a number type."""
    import torch

    torch.set_num_threads(work.threads)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=getattr(torch, precision))

    calls = []
    for rows, inputs, outputs, count in work.matmuls:
        # Up to four copies have operands of their own, each for as many of the matmuls.
        copies = max(n for n in range(1, 5) if count % n == 0)
        operands = [(draw(rows, inputs), draw(inputs, outputs), draw(rows, outputs))
                    for _ in range(copies)]
        # Results are allocated once, outside the measured calls.
        results = [torch.empty_like(operand) for operand in operands[0]]
        calls += [(*operands[index % copies], *results) for index in range(count)]

    def step() -> dict[str, Any]:
        for x, w, dy, to_inputs, to_weights, forward in calls:
            torch.mm(x, w, out=forward)
            torch.mm(dy, w.t(), out=to_inputs)
            torch.mm(x.t(), dy, out=to_weights)
        return {"label": f"PyTorch {precision}", "versions": {"PyTorch": torch.__version__}}

    return step


if __name__ == "__main__":
    system.run(prepare)
