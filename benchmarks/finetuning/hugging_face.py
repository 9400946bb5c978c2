"""Runs the plain PyTorch loop, with batches of similar length or random ones.

Runs in the environment of `make peers`.
"""

import os
import pathlib

import numpy as np
import torch
import transformers
from transformers import AutoTokenizer

from benchmarks.harness.worker import Ready
from benchmarks.real_encoder.pytorch_data import plan_epoch, read
from benchmarks.real_encoder.pytorch_loop import Loop


def prepare(task: str, encoder: str, train: str, dev: str, max_seq_length: int, examples: int,
            batch: int, precision: str, order: str) -> Ready:
    """Returns turns of training and inference with an encoder and a new head."""
    del dev  # The turns read the first training examples.
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    rows = read(task, pathlib.Path(train), AutoTokenizer.from_pretrained(encoder),
                max_seq_length)[:examples]
    loop = Loop(pathlib.Path(encoder), task, rows, precision=precision, seed=1,
                learning_rate=1e-4, num_steps=10_000 * len(rows))
    numbers = np.random.default_rng(1)

    def turn(what: str) -> dict[str, int]:
        if what == "infer":
            loop.predict(rows, batch)
        else:
            for indices in plan_epoch(rows, batch, order, numbers):
                loop.step([rows[index] for index in indices])
        return {"rows": len(rows), "tokens": sum(len(row["ids"]) for row in rows)}

    return Ready(
        label=f"{precision}{' autocast' if precision == 'bfloat16' else ''}, {order} batches",
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        turn=turn)
