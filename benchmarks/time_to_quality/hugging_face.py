"""Worker: Hugging Face's ELECTRA in PyTorch, trained by a plain loop with the paper's settings.

Runs in the peers' environment.
"""

import json
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.harness.worker import Ready, serve
from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.hugging_face import JointModel

_TRIAL_STEPS = 6
"""Measure how many steps fit into the given time; the first is not counted."""


def prepare(workload: Mapping[str, Any], directory: str, evaluations: int, learning_rate: float,
            seed: int) -> Ready:
    """Loads the examples, train.npy and held_out.npz of a directory.

    It gets a line of JSON in points.jsonl for every evaluation, and the logits in files beside it.
    """
    work, home = plain.workload_from(workload), pathlib.Path(directory)
    torch.set_num_threads(work.threads)
    train = np.load(home / "train.npy", mmap_mode="r")
    with np.load(home / "held_out.npz") as file:
        held_out = {name: torch.from_numpy(file[name]).long() for name in file.files}

    def turn(seconds: float) -> dict[str, int]:
        trial = _step_maker(work, train, learning_rate, seed, steps=100)
        next(trial)
        begin = time.perf_counter()
        for _ in range(_TRIAL_STEPS - 1):
            next(trial)
        step_seconds = (time.perf_counter() - begin) / (_TRIAL_STEPS - 1)
        steps, trained = max(int(seconds / step_seconds), evaluations), 0.0
        running = _step_maker(work, train, learning_rate, seed, steps)
        for step in range(1, steps + 1):
            begin = time.perf_counter()
            model = next(running)
            trained += time.perf_counter() - begin
            if step % (steps // evaluations) == 0:
                loss, scores = _evaluate(model, held_out)
                np.savez(home / f"scores-{step}.npz", **scores)
                with (home / "points.jsonl").open("a") as file:
                    print(json.dumps({"step": step, "seconds": trained, "generator_loss": loss}),
                          file=file)
        return {"steps": steps}

    return Ready(label="", versions={"PyTorch": torch.__version__}, turn=turn)


def _step_maker(workload: plain.Workload, train: np.ndarray, rate: float, seed: int,
                steps: int) -> Iterator[JointModel]:
    """Yields the model after each step of a run of `steps`."""
    torch.manual_seed(seed)
    model = JointModel(workload).train()
    optimizer = torch.optim.AdamW(
        _groups(model), lr=rate, eps=plain.ADAM_EPSILON, fused=True)
    warmup = min(10_000, max(1, steps // 10))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _schedule(warmup, steps))
    valid = torch.ones(workload.batch, workload.length, dtype=torch.bool)
    for step in range(steps):
        ids = torch.from_numpy(train[step % len(train)].astype(np.int64))
        optimizer.zero_grad(set_to_none=True)
        model(ids, valid).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plain.CLIP_NORM, foreach=True)
        optimizer.step()
        schedule.step()
        yield model


def _groups(model: JointModel) -> list[dict[str, Any]]:
    """Biases and layer norms don't decay."""
    decays = [value for value in model.parameters() if value.ndim > 1]
    others = [value for value in model.parameters() if value.ndim <= 1]
    return [{"params": decays, "weight_decay": plain.WEIGHT_DECAY},
            {"params": others, "weight_decay": 0.0}]


def _schedule(warmup: int, steps: int) -> Callable[[int], float]:
    return lambda step: min(1.0, (step + 1) / warmup) * max(0.0, 1.0 - step / steps)


@torch.no_grad()
def _evaluate(model: JointModel,
              held_out: dict[str, torch.Tensor]) -> tuple[float, dict[str, np.ndarray]]:
    """Returns the generator's loss, and by kind of corruption the logits and the truth.

    Masks and draws are the same at every evaluation.
    """
    state = torch.get_rng_state()
    torch.manual_seed(0)
    model.eval()
    losses, found = [], {}
    for batch in range(len(held_out["ids"])):
        ids, valid = held_out["ids"][batch], held_out["valid"][batch].bool()
        loss, corrupted = model.corrupt(ids, valid)
        losses.append(loss.item())
        kinds = {"own": corrupted} | {
            name: some[batch] for name, some in held_out.items()
            if name not in ("ids", "valid")}
        for kind, replaced in kinds.items():
            logits = model.discriminator(replaced, attention_mask=valid).logits.float()
            found.setdefault(f"{kind}_logits", []).append(logits[valid].numpy())
            found.setdefault(f"{kind}_replaced", []).append((replaced != ids)[valid].numpy())
    model.train()
    torch.set_rng_state(state)
    return float(np.mean(losses)), {name: np.concatenate(some) for name, some in found.items()}


if __name__ == "__main__":
    serve(prepare)
