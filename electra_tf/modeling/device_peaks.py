"""Peak arithmetic rates of accelerators: the denominator of the model FLOPs utilisation."""

PRECISIONS = ("float32", "bfloat16", "float16")


# Matched in order as lower-case parts of the device's name, so the special comes before the
# general. Without structured sparsity, tensor cores accumulating in float32. Sources: NVIDIA's data
# sheets and architecture white papers (V100, Turing T4, A100, A10, Ampere GA102, Ada, L4, L40S,
# H100, H200, HGX B200) and Google Cloud's TPU system architecture pages, per chip.
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

float32 is the rate that TensorFlow gets for float32 products by default: TensorFloat-32 on NVIDIA
Ampere and later, bfloat16 products on TPUs.
"""


def peak_flops(device_name: str, precision: str) -> float | None:
    """Returns a device's peak in FLOP/s, or None for an unknown device.

    `device_name` is the driver's, such as "NVIDIA H100 80GB HBM3", or "TPU v4".
    """
    words = device_name.lower().replace("_", " ")
    for part, peak in PEAKS.items():
        if _contains_words(words, part):
            rate = peak[PRECISIONS.index(precision)]
            return None if rate is None else rate * 1e12
    return None


def _contains_words(text: str, part: str) -> bool:
    """Whether `part` is in `text` and starts and ends a word: "l4" is not in "l40s"."""
    start = text.find(part)
    end = start + len(part)
    return start >= 0 and not text[start - 1:start].isalnum() and not text[end:end + 1].isalnum()
