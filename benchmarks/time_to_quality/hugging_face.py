"""Trains Hugging Face's ELECTRA in PyTorch in a plain loop with the paper's settings.

Runs in the environment of `make peers`.
"""

import pathlib
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.harness.worker import Ready, serve
from benchmarks.pretraining.hugging_face import JointModel, training_of
from benchmarks.pretraining.workload import Setting, Workload, workload_from


def prepare(steps: int, every: int, workload: Mapping[str, Any], directory: str,
            learning_rate: float, seed: int) -> Ready:
    """Returns a turn that is a whole run on a directory's train.npy and held_out.npz."""
    work, home = workload_from(workload), pathlib.Path(directory)
    torch.set_num_threads(work.threads)
    train = np.load(home / "train.npy", mmap_mode="r")
    with np.load(home / "held_out.npz") as file:
        ids, valid = torch.from_numpy(file["ids"]).long(), torch.from_numpy(file["valid"])

    def turn() -> dict[str, Any]:
        points, trained, begin = [], 0.0, time.perf_counter()
        for step, model in enumerate(_models(work, train, learning_rate, seed, steps), start=1):
            if step % every == 0 or step == steps:
                trained += time.perf_counter() - begin
                points.append((trained, _evaluate(model, ids, valid)))
                begin = time.perf_counter()
        return {"points": points}

    return Ready(turn=turn, versions={"PyTorch": torch.__version__})


def _models(workload: Workload, train: np.ndarray, learning_rate: float, seed: int,
            steps: int) -> Iterator[JointModel]:
    """Yields the model after each step of a run of `steps`."""
    torch.manual_seed(seed)
    model = JointModel(workload).train()
    optimizer, update = training_of(model, learning_rate, Setting(precision="float32"))
    warmup = min(10_000, max(1, steps // 10))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / warmup) * max(0.0, 1.0 - step / steps))
    valid = torch.ones(workload.batch, workload.length, dtype=torch.bool)
    for step in range(steps):
        ids = torch.from_numpy(train[step % len(train)].astype(np.int64))
        update(lambda: model(ids, valid))  # noqa: B023
        schedule.step()
        yield model


@torch.no_grad()
def _evaluate(model: JointModel, ids: torch.Tensor, valid: torch.Tensor) -> float:
    """Returns the AUC on batches int64 [E, B, L]; masks and draws are equal in all evaluations."""
    state = torch.get_rng_state()
    torch.manual_seed(0)
    model.eval()
    logits, replaced = [], []
    for original, mask in zip(ids, valid, strict=True):
        _, corrupted = model.corrupt(original, mask)
        found = model.discriminator(corrupted, attention_mask=mask).logits.float()
        logits.append(found[mask].numpy())
        replaced.append((corrupted != original)[mask].numpy())
    model.train()
    torch.set_rng_state(state)
    return auc(np.concatenate(replaced), np.concatenate(logits))


def auc(replaced: np.ndarray, logits: np.ndarray) -> float:
    """Returns the share of pairs with the higher logit on the replaced token; ties count 0.5."""
    others, found = np.sort(logits[~replaced]), logits[replaced]
    below = np.searchsorted(others, found, "left") + np.searchsorted(others, found, "right")
    return float(below.mean() / 2 / len(others))


if __name__ == "__main__":
    serve(prepare)
