"""Facts of this machine that Linux and macOS report differently."""

import functools
import os
import pathlib
import resource
import sys

CPU_INFO = pathlib.Path("/proc/cpuinfo")
_ISAS_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")


def usable_cores() -> int:
    """Returns how many cores this process may use; macOS binds no process to cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def peak_memory_bytes() -> int:
    """Returns the largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # Linux counts KiB.


def cpu_info() -> dict[str, str]:
    """Returns the "name: value" entries of the first core in /proc/cpuinfo; {} on macOS."""
    core = CPU_INFO.read_text(encoding="utf-8").split("\n\n")[0] if CPU_INFO.exists() else ""
    pairs = (line.partition(":") for line in core.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


@functools.cache
def cpu_multiplies_bfloat16() -> bool:
    """Returns True on an x86 CPU with bfloat16 units that oneDNN's variables leave in use."""
    flags = cpu_info().get("flags", "").split()
    return (os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() not in ("0", "false")
            and os.environ.get("ONEDNN_MAX_CPU_ISA", "").upper() not in _ISAS_WITHOUT_BFLOAT16
            and ("avx512_bf16" in flags or "amx_bf16" in flags))
