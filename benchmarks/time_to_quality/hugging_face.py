"""Trains Hugging Face's ELECTRA in PyTorch in a plain loop with the paper's settings.

Runs in the environment of `make peers`.
"""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.hugging_face import JointModel, training_of
from benchmarks.pretraining.workload import StepOptions, workload_from


def prepare(steps: int, every: int, workload: Mapping[str, Any], directory: str,
            learning_rate: float, seed: int) -> Ready:
    """Returns a turn that is a whole run on a directory's train.npy and held_out.npz."""
    work = workload_from(workload)
    torch.set_num_threads(work.threads)
    train = np.load(f"{directory}/train.npy", mmap_mode="r")
    with np.load(f"{directory}/held_out.npz") as file:
        ids, valid = torch.from_numpy(file["ids"]).long(), torch.from_numpy(file["valid"])

    def turn() -> dict[str, Any]:
        points, seconds, begin = [], 0.0, time.perf_counter()
        torch.manual_seed(seed)
        model = JointModel(work).train()
        optimizer, update = training_of(model, learning_rate, StepOptions(precision="float32"))
        warmup = min(10_000, max(1, steps // 10))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / warmup) * max(0.0, 1.0 - step / steps))
        all_valid = torch.ones(work.batch, work.length, dtype=torch.bool)
        for step in range(steps):
            batch = torch.from_numpy(train[step % len(train)].astype(np.int64))
            update(lambda: model(batch, all_valid))  # noqa: B023
            schedule.step()
            if (step + 1) % every == 0 or step + 1 == steps:
                seconds += time.perf_counter() - begin
                points.append((seconds, _evaluate(model, ids, valid)))
                begin = time.perf_counter()
        return {"points": points}

    return Ready(turn=turn, versions={"PyTorch": torch.__version__})


@torch.no_grad()
def _evaluate(model: JointModel, ids: torch.Tensor, valid: torch.Tensor) -> float:
    """Returns the AUC on batches int64 [E, B, L]; masks and draws are equal in all evaluations."""
    state = torch.get_rng_state()
    torch.manual_seed(0)
    model.eval()
    all_logits, replaced = [], []
    for original, mask in zip(ids, valid, strict=True):
        _, corrupted = model.corrupt(original, mask)
        logits = model.discriminator(corrupted, attention_mask=mask).logits.float()
        all_logits.append(logits[mask].numpy())
        replaced.append((corrupted != original)[mask].numpy())
    model.train()
    torch.set_rng_state(state)
    return auc(np.concatenate(replaced), np.concatenate(all_logits))


def auc(replaced: np.ndarray, logits: np.ndarray) -> float:
    """Returns the share of pairs with the higher logit on the replaced token; ties count 0.5."""
    negatives, positives = np.sort(logits[~replaced]), logits[replaced]
    below = (np.searchsorted(negatives, positives, "left")
             + np.searchsorted(negatives, positives, "right"))
    return float(below.mean() / 2 / len(negatives))
