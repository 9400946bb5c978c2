"""The machine: what a table has to say about it, and the memory that is left."""

import os
import platform
from pathlib import Path

_KIB = 1024


def available_cores() -> int:
    """Returns the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe() -> dict[str, str | float]:
    """Returns processor, cores, memory, and how busy the machine is before the benchmark."""
    memory = _memory_bytes("MemTotal")
    return {
        "processor": _processor(),
        "cores": available_cores(),
        "memory_gb": 0.0 if memory is None else round(memory / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
    }


def has_room(largest_bytes: int) -> bool:
    """Tells whether one more process fits in memory beside the stopped ones.

    Args:
        largest_bytes: peak of the largest process so far; the next may need half as much again.
    """
    return fits(1.5 * largest_bytes)


def fits(needed_bytes: float) -> bool:
    """Tells whether so much memory is free, and a gigabyte more."""
    left = _memory_bytes("MemAvailable")
    return left is None or left > needed_bytes + 1e9


def _processor() -> str:
    lines = _lines(Path("/proc/cpuinfo"))
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_bytes(key: str) -> int | None:
    """A line of /proc/meminfo; None where there is none."""
    for line in _lines(Path("/proc/meminfo")):
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) * _KIB
    return None


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
