"""Worker: the step's dense matrix multiplications alone, in PyTorch. For the peers' environment."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.matmuls import step_of
from benchmarks.pretraining.workload import Setting, Step, Workload, serve, steps_of

Tensors = list[torch.Tensor]


def prepare(workload: Workload, setting: Setting) -> Ready:
    """Returns the matrix multiplications in the setting's number type."""
    torch.set_num_threads(workload.threads)
    return Ready(
        label=f"PyTorch {setting.precision}", versions={"PyTorch": torch.__version__},
        turn=steps_of(lambda: _build(workload, setting)), **device_facts(setting.device))


def device_facts(device: str) -> dict[str, Any]:
    """Returns the fields of `Ready` for a device, "cpu" or "cuda", the first card."""
    if device == "cpu":
        return {}
    return {"accelerator": torch.cuda.get_device_name(),
            "peak_bytes": torch.cuda.max_memory_allocated}


def _build(workload: Workload, setting: Setting) -> Step:
    dtype = getattr(torch, setting.precision)
    with torch.device(setting.device):
        multiply = step_of(workload, lambda _seed, rows, columns: torch.randn(
            rows, columns, dtype=dtype), _three_forms)

    def step() -> None:
        multiply()
        if setting.device != "cpu":
            torch.cuda.synchronize()

    return step


def _three_forms(inputs: Tensors, weights: Tensors, gradients: Tensors) -> Callable[[], object]:
    """Returns a function that writes into results made once: no memory is allocated meanwhile."""
    forward = torch.empty_like(gradients[0])
    to_inputs, to_weights = torch.empty_like(inputs[0]), torch.empty_like(weights[0])

    def call() -> None:
        for x, w, dy in zip(inputs, weights, gradients, strict=True):
            torch.mm(x, w, out=forward)
            torch.mm(dy, w.t(), out=to_inputs)
            torch.mm(x.t(), dy, out=to_weights)

    return call


if __name__ == "__main__":
    serve(prepare)
