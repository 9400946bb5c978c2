"""The fine-tuning benchmark's files and table; our worker trains and predicts."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.finetuning import rows as files
from benchmarks.finetuning.__main__ import table
from benchmarks.harness.turns import Measurement, Role, System


def test_ratios_are_to_the_fastest_peer_of_each_kind():
    def one(name, role, train, infer, failure=""):
        return Measurement(
            system=System(name=name, title=name, module="", role=role), label=name,
            failure=failure, turns={"train": [{"seconds": seconds} for seconds in train],
                                    "infer": [{"seconds": seconds} for seconds in infer]})

    lines = table([one("ours", Role.OURS, [1.0, 0.8, 2.0], [0.5]),
                   one("a", Role.PEER, [2.0], [1.5]), one("b", Role.PEER, [2.5], [1.0]),
                   one("c", Role.PEER, [0.1], [], "x")], 200)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["ours", "200 (100 to 250)", "2.00", "400 (400 to 400)", "2.00"]
    assert cells[1][2::2] == ["1.00", "0.67"] and cells[3][1:] == ["-"] * 4


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
