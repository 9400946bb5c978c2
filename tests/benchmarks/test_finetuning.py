"""The fine-tuning benchmark: our worker trains and predicts."""

import json
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_our_worker_trains_and_predicts():
    requests = [{"ids": [[101, 2000 + index, 102] for index in range(4)], "labels": [0, 1, 0, 1],
                 "batch": 2, "workload": {}, "precision": "float32"},
                {"what": "train"}, {"what": "infer"}]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.finetuning.ours"], text=True, capture_output=True,
        input="".join(json.dumps(one) + "\n" for one in requests), timeout=300, check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert replies[0]["label"] == "float32"
    assert len(replies) == 3 and all(reply["seconds"] > 0.0 for reply in replies[1:])
