"""The environment with PyTorch and transformers, which `make peers` builds, and its worker."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("PEERS_PYTHON", ROOT / ".venv-peers" / "bin" / "python"))
needed = pytest.mark.skipif(not PYTHON.exists(), reason=(
    f"There is no {PYTHON}: run `make peers`, or set PEERS_PYTHON to a Python with the packages "
    "of requirements/peers.txt."))
TIME_LIMIT = 300


class Outputs(NamedTuple):
    """What PyTorch computed, said and wrote."""

    arrays: dict[str, np.ndarray]
    """By "network|hidden_0", "network|logits" and so on."""
    report: dict
    saved: Path
    """Every network as transformers writes it."""


def run(directory: Path, texts: Sequence[str]) -> Outputs:
    """Returns what `pytorch_outputs` makes of the networks below a directory."""
    (directory / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    done = subprocess.run(
        [str(PYTHON.absolute()), "-m", "tests.parity.pytorch_outputs", str(directory)], cwd=ROOT,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}, capture_output=True,
        text=True, check=False, timeout=TIME_LIMIT)
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(directory / "outputs.npz") as arrays:
        return Outputs({name: arrays[name] for name in arrays.files},
                       json.loads((directory / "report.json").read_text()), directory / "saved")
