"""The fine-tuning benchmark's files and table; the workers run in the command's own test."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.finetuning.__main__ import Measurement, table
from benchmarks.finetuning.workload import read_rows, write_rows


def test_rows_come_back_as_they_were(tmp_path):
    rows = [np.array([2, 7, 3], np.int32), np.array([2, 3], np.int32)]
    path = str(tmp_path / "rows.npz")
    write_rows(path, rows, np.array([1, 0]))
    ids, labels = read_rows(path)
    assert [one.tolist() for one in ids] == [[2, 7, 3], [2, 3]]
    assert labels.tolist() == [1, 0]


def test_ratios_are_to_the_fastest_peer_of_each_kind():
    ours = Measurement(label="ours", ours=True, rates={"train": [200.0, 220.0, 180.0],
                                                       "infer": [900.0]})
    first = Measurement(label="a", ours=False, rates={"train": [100.0], "infer": [300.0]})
    second = Measurement(label="b", ours=False, rates={"train": [80.0], "infer": [450.0]})
    dead = Measurement(label="c", ours=False, failure="out of luck")
    lines = table([ours, first, second, dead], batch=32, lengths=[10, 20]).splitlines()
    assert lines[0].endswith("2 sentences of SST-2, batch 32; 15.0 tokens on average, 20 at most")
    assert lines[4] == "| ours | 200 (180 to 220) | 2.00 | 900 (900 to 900) | 2.00 |"
    assert lines[5] == "| a | 100 (100 to 100) | 1.00 | 300 (300 to 300) | 0.67 |"
    assert "failed: out of luck" in lines[7]


@pytest.mark.slow
def test_our_worker_trains_and_predicts(tmp_path):
    rows = str(tmp_path / "rows.npz")
    write_rows(rows, [np.array([101, 2000 + index, 102], np.int32) for index in range(4)],
               np.array([0, 1, 0, 1]))
    requests = [{"rows": rows, "batch": 2, "precision": "float32", "threads": 1},
                {"what": "train"}, {"what": "infer"}]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.finetuning.ours"], text=True, capture_output=True,
        input="".join(json.dumps(one) + "\n" for one in requests), timeout=300, check=True)
    replies = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert replies[0]["label"] == "float32"
    assert [reply["examples"] for reply in replies[1:]] == [4, 4]
