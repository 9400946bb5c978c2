"""Hides the log lines of native libraries, so that stderr shows the program's own messages."""

import contextlib
import logging
import os
import pathlib
import sys
from collections.abc import Iterator

_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")  # NVIDIA's, and Windows' below Linux.


def quiet() -> None:
    """Makes TensorFlow, imported later in this process, log errors only.

    Without a GPU the errors of searching for one are hidden too. TF_CPP_MIN_LOG_LEVEL=0 shows all.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # It reports building its font cache.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    may_have_gpu = os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1") and any(
        pathlib.Path(path).exists() for path in _DRIVERS)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2" if may_have_gpu else "3")


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
