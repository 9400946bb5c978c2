"""Python commands in a process of their own, and what they write."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_TENSORFLOW_LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: |[IWEF]\d{4} |WARNING: All log messages")


def run(*arguments: object, cwd: Path = ROOT, env: dict[str, str] | None = None
        ) -> subprocess.CompletedProcess:
    """Runs Python with these arguments; it must succeed."""
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, env=env, timeout=600,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def own_lines(text: str) -> list[str]:
    """Returns the lines of a process without those of TensorFlow's C++."""
    return [line for line in text.splitlines() if not _TENSORFLOW_LINE.match(line)]
