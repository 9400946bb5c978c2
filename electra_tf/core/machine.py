"""Cores, memory and CPU of this machine, and the native libraries below TensorFlow."""

import contextlib
import functools
import logging
import os
import pathlib
import platform
import resource
import sys
from collections.abc import Iterator

CPU_INFO = pathlib.Path("/proc/cpuinfo")
_ISAS_WITHOUT_BFLOAT16 = ("SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX512_CORE", "AVX512_CORE_VNNI")
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")  # NVIDIA's, and Windows' below Linux.


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


def configure_libraries() -> None:
    """Makes TensorFlow, imported later in this process, use oneDNN on x86 and log errors only.

    By itself TensorFlow uses oneDNN on CPUs with AVX-512 VNNI or AVX VNNI. On others with AVX2,
    whose matmuls are faster too, ELECTRA-Small then trains 1.1 times as fast and MiniLM 1.3 times.
    Without a GPU the errors of searching for one are hidden. TF_CPP_MIN_LOG_LEVEL=0 shows all.
    """
    if platform.machine() in ("x86_64", "AMD64"):
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # It reports building its font cache.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    may_have_gpu = os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1") and any(
        pathlib.Path(path).exists() for path in _DRIVERS)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if may_have_gpu else "3")


def configure_process() -> None:
    """Does the same for a process that is this program's alone, and leaves out Keras 3.

    TensorFlow imports the Keras behind `tf.keras`. Keras 3 imports scikit-learn, matplotlib and
    pandas: a quarter of a program's imports (0.8 s of CPU time), and 100 MB.
    """
    configure_libraries()
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


@contextlib.contextmanager
def stderr_closed() -> Iterator[None]:
    """Drops what native code writes to stderr, during a call whose failure is an exception."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
