"""Runs the dense matrix multiplications of one training step alone, the machine's limit.

Attention's two batched multiplications per head are left out: they run slower than dense ones, and
the throughput measured without them is a higher limit. The worker runs in both environments.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness.worker import Ready
from benchmarks.pretraining import workload
from benchmarks.pretraining.workload import EncoderSizes, Step, StepOptions, Workload


@dataclasses.dataclass(frozen=True, kw_only=True)
class Matmul:
    """[rows, inputs] x [inputs, outputs], `count` times in a step, in all three forms."""

    rows: int
    inputs: int
    outputs: int
    count: int = 1

    @property
    def copies(self) -> int:
        """Number of copies with operands of their own: a divisor of `count`, at most 4."""
        return max(n for n in range(1, 5) if self.count % n == 0)


def step_matmuls(work: Workload) -> list[Matmul]:
    """Returns the matrix multiplications of both encoders and both heads."""
    tokens, hidden = work.tokens, work.discriminator.hidden_size
    masked, generator = work.batch * work.predictions, work.generator
    embedding = generator.embedding_size
    return [
        *_of_encoder(work.discriminator, tokens),
        Matmul(rows=tokens, inputs=hidden, outputs=hidden),
        Matmul(rows=tokens, inputs=hidden, outputs=1),
        *_of_encoder(generator, tokens),
        Matmul(rows=masked, inputs=generator.hidden_size, outputs=embedding),
        Matmul(rows=masked, inputs=embedding, outputs=work.vocab_size)]


def _of_encoder(encoder: EncoderSizes, rows: int) -> list[Matmul]:
    hidden, inner, layers = encoder.hidden_size, encoder.intermediate_size, encoder.num_layers
    matmuls = [
        # Query, key, value, attention output.
        Matmul(rows=rows, inputs=hidden, outputs=hidden, count=4 * layers),
        Matmul(rows=rows, inputs=hidden, outputs=inner, count=layers),
        Matmul(rows=rows, inputs=inner, outputs=hidden, count=layers)]
    if encoder.embedding_size != hidden:
        matmuls.append(Matmul(rows=rows, inputs=encoder.embedding_size, outputs=hidden))
    return matmuls


def step_flops(work: Workload) -> int:
    """Returns the FLOPs of one step: x W forward, dy W^T and x^T dy backward, each 2 m k n."""
    return sum(3 * 2 * matmul.rows * matmul.inputs * matmul.outputs * matmul.count
               for matmul in step_matmuls(work))


def step_of(work: Workload, operand: Callable[[int, int, int], Any],
            three_forms: Callable[[Sequence, Sequence, Sequence], Callable[[], object]],
            wait: Callable[[], object] = lambda: None) -> Step:
    """Returns a step that runs every matrix multiplication `count` times.

    `operand` maps a seed, rows and columns to random numbers, `three_forms` as many x, W and dy to
    a function that multiplies them in all forms; `wait` returns when the device has finished.
    """
    calls = []
    for matmul in step_matmuls(work):
        rows, inputs, outputs = matmul.rows, matmul.inputs, matmul.outputs
        call = three_forms(*([operand(copy, *shape) for copy in range(matmul.copies)]
                             for shape in ((rows, inputs), (inputs, outputs), (rows, outputs))))
        calls += [call] * (matmul.count // matmul.copies)

    def step() -> None:
        for call in calls:
            call()
        wait()

    return step


@workload.takes_workload
def prepare(work: Workload, options: StepOptions, library: str) -> Ready:
    """Returns the matrix multiplications by a library, in the setting's number type."""
    return {"TensorFlow": _tensorflow, "PyTorch": _pytorch}[library](work, options)


def _tensorflow(work: Workload, options: StepOptions) -> Ready:
    import tensorflow as tf

    def operand(seed: int, rows: int, columns: int) -> tf.Tensor:
        return tf.cast(tf.random.stateless_normal([rows, columns], [seed, rows]),
                       options.precision)

    def three_forms(*operands: list[tf.Tensor]) -> Callable[[], object]:
        # One graph has all copies; no two share operands, so none is computed only once.
        @tf.function(autograph=False)
        def multiply(*operands: list[tf.Tensor]) -> list[tf.Tensor]:
            results = []
            for x, w, dy in zip(*operands, strict=True):
                results += [tf.matmul(x, w), tf.matmul(dy, w, transpose_b=True),
                            tf.matmul(x, dy, transpose_a=True)]
            # One element of each is read: the optimizer would drop an unused multiplication.
            return [result[0, 0] for result in results]

        return lambda: multiply(*operands)

    return Ready(label=f"TensorFlow {options.precision}", versions={"TensorFlow": tf.__version__},
                 turn=workload.steps_of(lambda: step_of(work, operand, three_forms)))


def _pytorch(work: Workload, options: StepOptions) -> Ready:
    import torch

    torch.set_num_threads(work.threads)

    def operand(_seed: int, rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, dtype=getattr(torch, options.precision),
                           device=options.device)

    def three_forms(*operands: list[torch.Tensor]) -> Callable[[], object]:
        # Results are allocated once, outside the measured calls.
        to_inputs, to_weights, forward = (torch.empty_like(some[0]) for some in operands)

        def call() -> None:
            for x, w, dy in zip(*operands, strict=True):
                torch.mm(x, w, out=forward)
                torch.mm(dy, w.t(), out=to_inputs)
                torch.mm(x.t(), dy, out=to_weights)

        return call

    wait = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    return Ready(label=f"PyTorch {options.precision}", versions={"PyTorch": torch.__version__},
                 turn=workload.steps_of(lambda: step_of(work, operand, three_forms, wait)),
                 **device_facts(options.device))


def device_facts(device: str) -> dict[str, Any]:
    """Returns the fields of `Ready` for PyTorch's device, "cpu" or "cuda", the first GPU."""
    if device == "cpu":
        return {}
    import torch

    return {"accelerator": torch.cuda.get_device_name(),
            "peak_bytes": torch.cuda.max_memory_allocated}
