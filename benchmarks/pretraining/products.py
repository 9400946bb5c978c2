"""The dense products of one training step, to measure the machine at the model's own shapes.

Attention's two batched products per head are left out: they run slower than dense ones, so the
rate measured without them is a higher limit. Standard library only.
"""

import dataclasses
from collections.abc import Callable

from benchmarks.pretraining.workload import Encoder, Workload

FORMS = 3
"""x W forward; dy W^T and x^T dy backward: each 2 m k n FLOPs."""
_MOST_COPIES = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Product:
    """[rows, inputs] x [inputs, outputs], `count` times in a step, in all three forms."""

    rows: int
    inputs: int
    outputs: int
    count: int

    @property
    def flops(self) -> int:
        """Of all `count` in their three forms."""
        return FORMS * 2 * self.rows * self.inputs * self.outputs * self.count

    @property
    def copies(self) -> int:
        """How many to run side by side, with operands of their own: a divisor of `count`."""
        return max(n for n in range(1, _MOST_COPIES + 1) if self.count % n == 0)


def step_products(workload: Workload) -> list[Product]:
    """Returns the products of both encoders and both heads."""
    hidden, generator = workload.discriminator.hidden_size, workload.generator
    masked = workload.batch * workload.predictions
    return [
        *_encoder_products(workload.discriminator, workload.tokens),
        Product(rows=workload.tokens, inputs=hidden, outputs=hidden, count=1),
        Product(rows=workload.tokens, inputs=hidden, outputs=1, count=1),
        *_encoder_products(generator, workload.tokens),
        Product(rows=masked, inputs=generator.hidden_size, outputs=generator.embedding_size,
                count=1),
        Product(rows=masked, inputs=generator.embedding_size, outputs=workload.vocab_size,
                count=1),
    ]


def step_flops(workload: Workload) -> int:
    """Returns the FLOPs of all products of one step."""
    return sum(product.flops for product in step_products(workload))


def run_all(calls: list[tuple[Product, Callable[[], object]]]) -> None:
    """Runs every product `count` times.

    Args:
        calls: each product with a function that runs `copies` of it in all three forms.
    """
    for product, call in calls:
        for _ in range(product.count // product.copies):
            call()


def _encoder_products(encoder: Encoder, rows: int) -> list[Product]:
    hidden, inner, layers = encoder.hidden_size, encoder.intermediate_size, encoder.num_layers
    products = [
        # Query, key, value, attention output.
        Product(rows=rows, inputs=hidden, outputs=hidden, count=4 * layers),
        Product(rows=rows, inputs=hidden, outputs=inner, count=layers),
        Product(rows=rows, inputs=inner, outputs=hidden, count=layers),
    ]
    if encoder.embedding_size != hidden:
        products.append(
            Product(rows=rows, inputs=encoder.embedding_size, outputs=hidden, count=1))
    return products
