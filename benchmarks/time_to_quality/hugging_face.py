"""Hugging Face's ELECTRA in PyTorch, trained by a plain loop with the paper's settings.

Runs in the peers' environment. Takes the path of a job (JSON), beside which the examples are;
prints a line of JSON for every evaluation, whose logits it leaves in a file there.
"""

import json
import pathlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.pretraining import workload as plain
from benchmarks.pretraining.hugging_face import JointModel
from benchmarks.pretraining.workload import workload_from
from benchmarks.time_to_quality import arrays

_TRIAL_STEPS = 6
"""To learn how many steps the given time has room for; the first is not counted."""


def main() -> None:
    """Trains as the job says: workload, seconds, evaluations, learning_rate, seed."""
    path = pathlib.Path(sys.argv[1])
    job, directory = json.loads(path.read_text()), path.parent
    workload = workload_from(job["workload"])
    torch.set_num_threads(workload.threads)
    train = np.load(directory / arrays.TRAIN, mmap_mode="r")
    with np.load(directory / arrays.HELD_OUT) as file:
        held_out = {name: torch.from_numpy(file[name]).long() for name in file.files}
    trial = _step_maker(workload, job, train, steps=100)
    next(trial)
    begin = time.perf_counter()
    for _ in range(_TRIAL_STEPS - 1):
        next(trial)
    steps = int(job["seconds"] / (time.perf_counter() - begin) * (_TRIAL_STEPS - 1))
    steps = max(steps, job["evaluations"])
    print(json.dumps({"steps": steps}), flush=True)
    _train(workload, job, train, held_out, steps, directory)


def _train(workload: plain.Workload, job: dict[str, Any], train: np.ndarray,
           held_out: dict[str, torch.Tensor], steps: int, directory: pathlib.Path) -> None:
    running, every = _step_maker(workload, job, train, steps), steps // job["evaluations"]
    seconds = 0.0
    for step in range(1, steps + 1):
        begin = time.perf_counter()
        model = next(running)
        seconds += time.perf_counter() - begin
        if step % every == 0:
            loss, scores = _evaluate(model, held_out)
            path = directory / f"scores-{step}.npz"
            np.savez(path, **scores)
            print(json.dumps({"step": step, "seconds": seconds, "generator_loss": loss,
                              "scores": str(path)}), flush=True)


def _step_maker(workload: plain.Workload, job: dict[str, Any], train: np.ndarray,
                steps: int) -> Iterator[JointModel]:
    """Yields the model after each step of a run of `steps`."""
    torch.manual_seed(job["seed"])
    model = JointModel(workload).train()
    optimizer = torch.optim.AdamW(
        _groups(model), lr=job["learning_rate"], eps=plain.ADAM_EPSILON, fused=True)
    warmup = min(10_000, max(1, steps // 10))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, _rate(warmup, steps))
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


def _rate(warmup: int, steps: int) -> Callable[[int], float]:
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
    for batch in range(len(held_out[arrays.IDS])):
        ids, valid = held_out[arrays.IDS][batch], held_out[arrays.VALID][batch].bool()
        loss, corrupted = model.corrupt(ids, valid)
        losses.append(loss.item())
        kinds = {arrays.OWN: corrupted} | {
            name: some[batch] for name, some in held_out.items()
            if name not in (arrays.IDS, arrays.VALID)}
        for kind, replaced in kinds.items():
            logits = model.discriminator(replaced, attention_mask=valid).logits.float()
            found.setdefault(f"{kind}_logits", []).append(logits[valid].numpy())
            found.setdefault(f"{kind}_replaced", []).append((replaced != ids)[valid].numpy())
    model.train()
    torch.set_rng_state(state)
    return float(np.mean(losses)), {name: np.concatenate(some) for name, some in found.items()}


if __name__ == "__main__":
    main()
