"""FLOPs of matrix multiplications, and the peak rates of devices; needs no TensorFlow.

Look-ups count as 0, and a backward pass costs two forward passes (PaLM, appendix B).
"""

import re
from collections.abc import Iterable

from electra_tf.modeling.parameter_shapes import Shapes
from electra_tf.modeling.specs import NetworkSpec

PRECISIONS = ("float32", "bfloat16", "float16")
# The first name that is part of a device's name is taken, so "h100 nvl" comes before "h100". Rates
# are without structured sparsity, of tensor cores that accumulate in float32, of TPUs per chip.
# Sources: NVIDIA's data sheets and white papers (V100, Turing T4, A100, A10, Ampere GA102, Ada, L4,
# L40S, H100, H200, HGX B200) and Google Cloud's TPU system architecture pages.
PEAKS: dict[str, tuple[float | None, ...]] = {
    "b200": (1125.0, 2250.0, 2250.0),
    "h200 nvl": (417.5, 835.5, 835.5),
    "h200": (494.7, 989.4, 989.4),
    "h100 pcie": (378.0, 756.0, 756.0),
    "h100 nvl": (417.5, 835.5, 835.5),
    "h100": (494.7, 989.4, 989.4),
    "a100": (156.0, 312.0, 312.0),
    "l40s": (183.0, 362.0, 362.0),
    "l4": (60.0, 121.0, 121.0),
    "a10": (62.5, 125.0, 125.0),
    "rtx 4090": (82.6, 165.2, 165.2),
    "rtx 3090": (35.6, 71.0, 71.0),
    "v100-pcie": (14.0, None, 112.0),
    "v100": (15.7, None, 125.0),
    "t4": (8.1, None, 65.0),
    "tpu v6e": (918.0, 918.0, None),
    "tpu v5p": (459.0, 459.0, None),
    "tpu v5e": (197.0, 197.0, None),
    "tpu v4": (275.0, 275.0, None),
    "tpu v3": (123.0, 123.0, None),
    "tpu v2": (45.0, 45.0, None),
}
"""Dense peak rates of one device by `PRECISIONS`, in 1e12 FLOP/s; None where it has no such units.

float32 is the rate of TensorFlow's float32 matmuls by default: in TensorFloat-32 on NVIDIA Ampere
and later, in bfloat16 on TPUs.
"""


def peak_flops(device_name: str, precision: str) -> float | None:
    """Returns a device's peak in FLOP/s; None for an unknown device or a precision without units.

    `device_name` is the driver's, such as "NVIDIA H100 80GB HBM3", or "TPU v4".
    """
    words = device_name.lower().replace("_", " ")
    for part, peak in PEAKS.items():
        if re.search(rf"(?<![a-z0-9]){part}(?![a-z0-9])", words):  # "l4" is not in "l40s".
            rate = peak[PRECISIONS.index(precision)]
            return None if rate is None else rate * 1e12
    return None


def matmul_flops_per_token(networks: Iterable[NetworkSpec], length: int, slots: int) -> float:
    """Returns the matmul FLOPs per token of a training step; 0 without networks.

    Examples have `length` tokens and as many masked positions as prediction slots. The result times
    the tokens per second, divided by the device's peak, is the model FLOPs utilization.
    """
    total = 0.0
    for network in networks:
        config = network.encoder
        # Scores and weighted sums take 2 H each for every token that is attended to in a layer.
        attention = 4 * config.hidden_size * config.attended_tokens(length)
        forward = _kernel_flops(network.body) + network.towers * attention
        for head in network.heads:
            table = 2 * config.embedding_size * config.vocab_size if head.scores_vocabulary else 0
            forward += head.positions(slots / length) * (_kernel_flops(head.weights) + table)
        total += network.share * (3 if network.trained else 1) * forward
    return total


def _kernel_flops(shapes: Shapes) -> int:
    """Returns the FLOPs of multiplying one vector by every kernel."""
    return sum(2 * shape[0] * shape[1] for path, shape in shapes.items()
               if path.endswith("/kernel"))
