"""Starts the real program in a process of its own, to kill it or to read what it says."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests import tiny_run

ROOT = Path(__file__).parents[2]


def command(records: Path, model_dir: Path, *flags: str) -> list[str]:
    return [sys.executable, str(ROOT / "run_pretraining.py"), f"--data_dir={records}",
            f"--model_dir={model_dir}", "--model_size=tiny", *tiny_run.FLAGS, *flags]


def run(arguments: Sequence[str]) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT, timeout=300)
