"""Runs `ElectraForSequenceClassification` in PyTorch, in batches of rows of similar length.

Runs in the environment of `make peers`.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
import transformers
from transformers import ElectraForSequenceClassification

from benchmarks.harness.worker import Ready
from benchmarks.pretraining.hugging_face import config_of, training_of
from benchmarks.pretraining.workload import PAD_ID, StepOptions, workload_from

_LEARNING_RATE = 3e-4
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Ids int64 [B, L], bool [B, L] that is False on padding, classes int64 [B]."""


def prepare(ids: list[list[int]], labels: list[int], batch: int, workload: dict,
            precision: str) -> Ready:
    """Returns turns of training and inference with a new model."""
    work = workload_from(workload)
    torch.set_num_threads(work.threads)
    torch.manual_seed(1)
    numbers = np.random.default_rng(1)
    model = ElectraForSequenceClassification(config_of(work, work.discriminator))
    _, update = training_of(model, _LEARNING_RATE, StepOptions(precision=precision))
    lengths = np.array([len(row) for row in ids])
    batch_indices = np.split(np.argsort(-lengths, kind="stable"), range(batch, len(ids), batch))

    def batches(order: Iterable[int]) -> Iterator[Batch]:
        for indices in map(batch_indices.__getitem__, order):
            padded = np.full([len(indices), max(lengths[indices])], PAD_ID)
            for row, index in zip(padded, indices, strict=True):
                row[:lengths[index]] = ids[index]
            tokens = torch.from_numpy(padded)
            yield tokens, tokens != PAD_ID, torch.tensor([labels[index] for index in indices])

    def train() -> None:
        model.train()
        for tokens, valid, classes in batches(numbers.permutation(len(batch_indices))):
            update(lambda: model(tokens, attention_mask=valid, labels=classes).loss)  # noqa: B023

    def infer() -> None:
        model.eval()
        with torch.inference_mode(), torch.autocast(
                "cpu", torch.bfloat16, enabled=precision == "bfloat16"):
            for tokens, valid, _ in batches(range(len(batch_indices))):
                model(tokens, attention_mask=valid).logits.float().numpy()

    return Ready(
        label=f"{precision}{' autocast' if precision == 'bfloat16' else ''}",
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        turn=lambda what: {"train": train, "infer": infer}[what]())
