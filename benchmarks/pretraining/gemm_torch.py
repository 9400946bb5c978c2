"""Worker: the step's dense products alone, in PyTorch. Runs in the peers' environment."""

from collections.abc import Callable

import torch

from benchmarks.pretraining import torch_device
from benchmarks.pretraining.products import Product, run_all, step_products
from benchmarks.pretraining.protocol import Prepared, Step, serve
from benchmarks.pretraining.workload import Setting, Workload


def prepare(workload: Workload, setting: Setting) -> Prepared:
    """Returns the products in the setting's number type."""
    torch.set_num_threads(workload.threads)
    return Prepared(
        label=f"PyTorch {setting.precision}", versions={"PyTorch": torch.__version__},
        build=lambda: _build(workload, setting), **torch_device.described(setting.device))


def _build(workload: Workload, setting: Setting) -> Step:
    dtype = getattr(torch, setting.precision)
    with torch.device(setting.device):
        calls = [(product, _three_forms(product, dtype)) for product in step_products(workload)]

    def step() -> None:
        run_all(calls)
        torch_device.wait(setting.device)

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
