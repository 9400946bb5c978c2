"""Sets up the native libraries below TensorFlow: which ones multiply, and what they log."""

import contextlib
import logging
import os
import pathlib
import platform
import sys
from collections.abc import Iterator

_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")  # NVIDIA's, and Windows' below Linux.


def configure() -> None:
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
    configure()
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
