"""Python commands in a process of their own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: object, cwd: Path = ROOT, env: dict[str, str] | None = None
        ) -> subprocess.CompletedProcess:
    """Runs Python with these arguments; it must succeed."""
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, env=env, timeout=600,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done
