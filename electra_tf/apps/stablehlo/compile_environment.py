"""The environment with JAX and libtpu that `make compile-env` builds, seen from TensorFlow's."""

import os
import pathlib
import signal
import subprocess
from typing import TypeVar

from electra_tf.platform import strict_json
from electra_tf.platform.errors import UserError

ROOT = pathlib.Path(__file__).parents[3]
VARIABLE = "COMPILE_PYTHON"
_AHEAD_OF_TIME = "electra_tf.apps.stablehlo.ahead_of_time"

Answer = TypeVar("Answer")


def python() -> pathlib.Path:
    """Returns its interpreter, which need not be there."""
    return pathlib.Path(os.environ.get(VARIABLE, ROOT / ".venv-compile" / "bin" / "python"))


def ask(form: type[Answer], *flags: str) -> Answer:
    """Runs `ahead_of_time` there and returns what it prints.

    Args:
        form: dataclass of its JSON.
        flags: for it.

    Raises:
        UserError: there is no such environment, or the message that the command ended with.
    """
    if not python().exists():
        raise UserError(f"there is no {python()}: run `make compile-env`, or set {VARIABLE} to a "
                        "Python with the packages of requirements/compile.txt.")
    ended = subprocess.run(
        [str(python().absolute()), "-m", _AHEAD_OF_TIME, *flags], cwd=ROOT, capture_output=True,
        text=True, errors="replace", check=False)
    if ended.returncode == -signal.SIGKILL:
        raise UserError("the compiler was killed, most likely for want of memory: ELECTRA-Large "
                        "takes 5 GB and more.")
    if ended.returncode:
        *_, reason = ended.stderr.strip().splitlines() or [f"status {ended.returncode}"]
        raise UserError(reason.removeprefix("error: "))
    return strict_json.loads(ended.stdout.strip().splitlines()[-1].encode(), form)
