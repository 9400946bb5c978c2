"""Why TensorFlow sees no GPU where NVIDIA's driver is: which of CUDA's libraries are missing."""

import ctypes
import functools
import os
import pathlib
import site
import sys

LIBRARIES = ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9",
             "libcufft.so.11", "libcusolver.so.11", "libcusparse.so.12")
"""What TensorFlow 2.20 loads when it looks for GPUs; without one of them it takes the CPU."""
INSTALL = "pip install --require-hashes -r requirements/cuda.lock"
_DRIVER = pathlib.Path("/dev/nvidiactl")


def why_no_gpu() -> str:
    """Returns why TensorFlow found none, and what to do; "" where none is to be expected."""
    if not _DRIVER.exists() or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return ""
    missing = missing_libraries()
    reason = (f"{', '.join(missing)} can't be loaded; `{INSTALL}` brings what is missing"
              if missing else "CUDA's libraries are there; `nvidia-smi` says whether the driver "
                              "works and is new enough for CUDA 12")
    return f"this machine has NVIDIA's driver, but TensorFlow finds no GPU: {reason}"


@functools.cache
def note_unused_gpu() -> None:
    """Says on stderr, once, that a run goes on a CPU although a GPU may be there."""
    reason = why_no_gpu()
    if reason:
        print(f"note: {reason}. Going on with the CPU; --num_gpus=0 says that it is meant.",
              file=sys.stderr, flush=True)


def missing_libraries() -> list[str]:
    """Returns which of `LIBRARIES` neither pip installed nor the system has."""
    return [name for name in LIBRARIES if not _of_pip(name) and not _of_the_system(name)]


def _of_pip(name: str) -> bool:
    """Tells whether one of NVIDIA's wheels brought a library: TensorFlow looks there by itself."""
    return any(any(pathlib.Path(folder).glob(f"nvidia/*/lib/{name}"))
               for folder in site.getsitepackages())


def _of_the_system(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
