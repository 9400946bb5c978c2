"""Worker: the step's dense products alone, in PyTorch. Runs in the peers' environment."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.products import Product, run_all, step_products
from benchmarks.pretraining.workload import Setting, Step, Workload, serve, steps_of


def prepare(workload: Workload, setting: Setting) -> Ready:
    """Returns the products in the setting's number type."""
    torch.set_num_threads(workload.threads)
    return Ready(
        label=f"PyTorch {setting.precision}", versions={"PyTorch": torch.__version__},
        turn=steps_of(lambda: _build(workload, setting)), **device_facts(setting.device))


def device_facts(device: str) -> dict[str, Any]:
    """Returns what `Ready` holds of a device, "cpu" or "cuda", the first card."""
    if device == "cpu":
        return {}
    return {"accelerator": torch.cuda.get_device_name(),
            "peak_bytes": torch.cuda.max_memory_allocated}


def _build(workload: Workload, setting: Setting) -> Step:
    dtype = getattr(torch, setting.precision)
    with torch.device(setting.device):
        calls = [(product, _three_forms(product, dtype)) for product in step_products(workload)]

    def step() -> None:
        run_all(calls)
        if setting.device != "cpu":
            torch.cuda.synchronize()

    return step


def _three_forms(product: Product, dtype: torch.dtype) -> Callable[[], object]:
    """Writes into results made once, so that no memory is allocated while time runs."""
    def operands(rows: int, columns: int) -> list[torch.Tensor]:
        return [torch.randn(rows, columns, dtype=dtype) for _ in range(product.copies)]

    inputs = operands(product.rows, product.inputs)
    weights = operands(product.inputs, product.outputs)
    gradients = operands(product.rows, product.outputs)
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
