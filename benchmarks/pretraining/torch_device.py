"""Where PyTorch computes, the CPU or the first card. Runs in the peers' environment."""

from typing import Any

import torch


def described(device: str) -> dict[str, Any]:
    """Returns what `Prepared` says of a device; nothing of the CPU.

    Args:
        device: "cpu" or "cuda".
    """
    if device == "cpu":
        return {}
    return {"accelerator": torch.cuda.get_device_name(),
            "peak_bytes": torch.cuda.max_memory_allocated}


def wait(device: str) -> None:
    """Returns when a card has done all it was asked for; the CPU has already."""
    if device != "cpu":
        torch.cuda.synchronize()
