"""Keeps what libraries say of themselves off stderr, so that a person reads what we say.

TensorFlow's C++ code logs in two ways. One obeys TF_CPP_MIN_LOG_LEVEL; the other, Abseil's, obeys
nothing that Python has a name for: "WARNING: All log messages before absl::InitializeLog()", XLA's
"Compiled cluster" and gRPC's remarks on forks come from there.
"""

import contextlib
import ctypes
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import pathlib
import sys
from collections.abc import Iterator

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
"""0 shows everything, 1 no information, 2 no warnings, 3 no errors either; what is set stays."""
_DRIVERS = ("/dev/nvidiactl", "/dev/dxg")
"""One of them is there if a GPU may be: NVIDIA's driver, or Windows' below Linux."""
_ABSEIL_ERROR = 2
_SET_MIN_LOG_LEVEL = "_ZN4absl12lts_2025012714SetMinLogLevelENS0_18LogSeverityAtLeastE"
"""absl::SetMinLogLevel of the Abseil that TensorFlow 2.20 exports."""


def quiet() -> None:
    """Arranges for TensorFlow, imported later in this process, to log errors only.

    Without a GPU those of looking for one don't show either. Set TF_CPP_MIN_LOG_LEVEL=0 to see
    everything. Call it before TensorFlow is imported; a second call changes nothing.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # That it builds its font cache.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    if "tensorflow" not in sys.modules and not any(
            isinstance(finder, _TensorFlowFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TensorFlowFinder())


@contextlib.contextmanager
def stderr_closed() -> Iterator[None]:
    """Drops what native code writes to stderr: TensorFlow Lite's log has no level to set.

    For a call whose failure is an exception.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _TensorFlowFinder(importlib.abc.MetaPathFinder):
    """Sets both levels when TensorFlow is imported: the devices it may use are known then."""

    def find_spec(self, name, path, target=None) -> importlib.machinery.ModuleSpec | None:
        """Returns TensorFlow's own spec, whose loader sets Abseil's level at the end."""
        if name != "tensorflow":
            return None
        sys.meta_path.remove(self)
        os.environ.setdefault(_LEVEL, "2" if _may_have_gpu() else "3")
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_then_quiet(module) -> None:
                execute(module)
                _quiet_abseil()

            spec.loader.exec_module = execute_then_quiet
        return spec


def _may_have_gpu() -> bool:
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return not hidden and any(pathlib.Path(path).exists() for path in _DRIVERS)


def _quiet_abseil() -> None:
    """Lets Abseil's log follow the other's level, but show errors always."""
    level = os.environ[_LEVEL]
    library = ctypes.CDLL(None)  # What this process has loaded, TensorFlow's libraries included.
    if level.isdigit() and hasattr(library, _SET_MIN_LOG_LEVEL):
        getattr(library, _SET_MIN_LOG_LEVEL)(ctypes.c_int(min(int(level), _ABSEIL_ERROR)))
