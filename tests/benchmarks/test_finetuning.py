"""The fine-tuning benchmark's files and table; our worker trains and predicts."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.finetuning import rows as files


@pytest.mark.slow
def test_our_worker_trains_and_predicts(tmp_path):
    rows = str(tmp_path / "rows.npz")
    files.write(rows, [np.array([101, 2000 + index, 102], np.int32) for index in range(4)],
                np.array([0, 1, 0, 1]))
    requests = [{"rows": rows, "batch": 2, "precision": "float32", "threads": 1},
                {"what": "train"}, {"what": "infer"}]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.finetuning.ours"], text=True, capture_output=True,
        input="".join(json.dumps(one) + "\n" for one in requests), timeout=300, check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert replies[0]["label"] == "float32"
    assert len(replies) == 3 and all(reply["seconds"] > 0.0 for reply in replies[1:])
