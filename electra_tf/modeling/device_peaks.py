"""Peak arithmetic rates of accelerators: the denominator of the model FLOPs utilisation."""

import dataclasses
from typing import Literal

Precision = Literal["float32", "bfloat16", "float16"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Peak:
    """Dense peak rates of one device, in 1e12 FLOP/s; None where it has no such units.

    `float32` is the rate that TensorFlow gets for float32 products by default: TensorFloat-32 on
    NVIDIA Ampere and later, bfloat16 products on TPUs.
    """

    float32: float | None
    bfloat16: float | None
    float16: float | None


# Matched in order as lower-case parts of the device's name, so the special comes before the
# general. Without structured sparsity, tensor cores accumulating in float32. Sources: NVIDIA's data
# sheets and architecture white papers (V100, Turing T4, A100, A10, Ampere GA102, Ada, L4, L40S,
# H100, H200, HGX B200) and Google Cloud's TPU system architecture pages, per chip.
PEAKS: dict[str, Peak] = {
    "b200": Peak(float32=1125.0, bfloat16=2250.0, float16=2250.0),
    "h200 nvl": Peak(float32=417.5, bfloat16=835.5, float16=835.5),
    "h200": Peak(float32=494.7, bfloat16=989.4, float16=989.4),
    "h100 pcie": Peak(float32=378.0, bfloat16=756.0, float16=756.0),
    "h100 nvl": Peak(float32=417.5, bfloat16=835.5, float16=835.5),
    "h100": Peak(float32=494.7, bfloat16=989.4, float16=989.4),
    "a100": Peak(float32=156.0, bfloat16=312.0, float16=312.0),
    "l40s": Peak(float32=183.0, bfloat16=362.0, float16=362.0),
    "l4": Peak(float32=60.0, bfloat16=121.0, float16=121.0),
    "a10": Peak(float32=62.5, bfloat16=125.0, float16=125.0),
    "rtx 4090": Peak(float32=82.6, bfloat16=165.2, float16=165.2),
    "rtx 3090": Peak(float32=35.6, bfloat16=71.0, float16=71.0),
    "v100-pcie": Peak(float32=14.0, bfloat16=None, float16=112.0),
    "v100": Peak(float32=15.7, bfloat16=None, float16=125.0),
    "t4": Peak(float32=8.1, bfloat16=None, float16=65.0),
    "tpu v6e": Peak(float32=918.0, bfloat16=918.0, float16=None),
    "tpu v5p": Peak(float32=459.0, bfloat16=459.0, float16=None),
    "tpu v5e": Peak(float32=197.0, bfloat16=197.0, float16=None),
    "tpu v4": Peak(float32=275.0, bfloat16=275.0, float16=None),
    "tpu v3": Peak(float32=123.0, bfloat16=123.0, float16=None),
    "tpu v2": Peak(float32=45.0, bfloat16=45.0, float16=None),
}


def peak_flops(device_name: str, precision: Precision) -> float | None:
    """Returns a device's peak in FLOP/s, or None for an unknown device.

    `device_name` is the driver's, such as "NVIDIA H100 80GB HBM3", or "TPU v4".
    """
    words = device_name.lower().replace("_", " ")
    for part, peak in PEAKS.items():
        if _contains_words(words, part):
            rate = getattr(peak, precision)
            return None if rate is None else rate * 1e12
    return None


def peak_fraction(
    tokens_per_second: float, flops_per_token: float, peak: float | None
) -> float | None:
    """Returns the used fraction of the peak, FLOP/s of all devices; None for an unknown peak.

    `flops_per_token` counts the matmuls of a training step.
    """
    return None if peak is None else tokens_per_second * flops_per_token / peak


def _contains_words(text: str, part: str) -> bool:
    """Whether `part` is in `text` and starts and ends a word: "l4" is not in "l40s"."""
    start = text.find(part)
    end = start + len(part)
    return start >= 0 and not text[start - 1:start].isalnum() and not text[end:end + 1].isalnum()
