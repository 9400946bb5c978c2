"""The machine: its description for the tables, and the memory that is left."""

import os
import platform
from pathlib import Path


def available_cores() -> int:
    """Returns the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe() -> dict[str, str | float]:
    """Returns processor, cores, memory, and the machine's load before the benchmark."""
    names = [line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo"))
             if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": available_cores(),
        "memory_gb": round((_memory_bytes("MemTotal") or 0) / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
    }


def has_room(largest_bytes: int) -> bool:
    """Tells whether one more process fits in memory beside the stopped ones.

    Args:
        largest_bytes: peak of the largest process so far; the next may need half as much again.
    """
    left = _memory_bytes("MemAvailable")
    return left is None or left > 1.5 * largest_bytes + 1e9


def _memory_bytes(key: str) -> int | None:
    """Returns a line of /proc/meminfo; None where the file doesn't exist."""
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * 1024
    return None


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
