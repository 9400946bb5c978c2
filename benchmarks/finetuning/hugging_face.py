"""Worker: `ElectraForSequenceClassification` in PyTorch, padded to each batch's longest row.

Runs in the peers' environment.
"""

from collections.abc import Iterator

import numpy as np
import torch
import transformers
from transformers import ElectraConfig, ElectraForSequenceClassification

from benchmarks.finetuning import rows as plain
from benchmarks.harness.worker import Ready, serve

_POOL_BATCHES = 50
"""Batches' worth of shuffled rows that are sorted together, as transformers' own sampler does."""

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Ids int64 [B, L], bool [B, L] of what isn't padding, classes int64 [B]."""


def prepare(rows: str, batch: int, threads: int, precision: str, grouped: bool) -> Ready:
    """Builds model and optimizer."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    ids, labels = plain.read(rows)
    model = ElectraForSequenceClassification(ElectraConfig(
        vocab_size=plain.VOCAB_SIZE, embedding_size=plain.EMBEDDING_SIZE,
        hidden_size=plain.HIDDEN_SIZE, num_hidden_layers=plain.LAYERS,
        num_attention_heads=plain.HEADS, intermediate_size=plain.INTERMEDIATE_SIZE,
        hidden_act="gelu", hidden_dropout_prob=plain.DROPOUT,
        attention_probs_dropout_prob=plain.DROPOUT, num_labels=plain.CLASSES,
        attn_implementation="sdpa"))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=plain.LEARNING_RATE, eps=plain.ADAM_EPSILON,
        weight_decay=plain.WEIGHT_DECAY, fused=True)
    numbers = np.random.default_rng(1)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16")
    lengths = np.array([len(one) for one in ids])

    def batches(order: np.ndarray) -> Iterator[Batch]:
        for first in range(0, len(order), batch):
            yield _padded([ids[index] for index in order[first:first + batch]],
                          labels[order[first:first + batch]])

    def train() -> None:
        model.train()
        order = numbers.permutation(len(ids))
        if grouped:
            order = _grouped(order, lengths, batch, numbers)
        for tokens, valid, classes in batches(order):
            optimizer.zero_grad(set_to_none=True)
            with autocast:
                loss = model(tokens, attention_mask=valid, labels=classes).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), plain.CLIP_NORM, foreach=True)
            optimizer.step()

    def infer() -> None:
        model.eval()
        order = (np.argsort(-lengths, kind="stable") if grouped
                 else np.arange(len(lengths)))
        with torch.inference_mode(), autocast:
            for tokens, valid, _ in batches(order):
                model(tokens, attention_mask=valid).logits.float().numpy()

    return Ready(
        label=(f"{precision}{' autocast' if precision == 'bfloat16' else ''}, "
               f"batches {'of similar length' if grouped else 'as they come'}"),
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        turn=lambda what: {"train": train, "infer": infer}[what]())


def _grouped(order: np.ndarray, lengths: np.ndarray, batch: int,
             numbers: np.random.Generator) -> np.ndarray:
    """Sorts pools of a shuffled order by length, and shuffles the batches."""
    pool = _POOL_BATCHES * batch
    ordered = np.concatenate([
        part[np.argsort(-lengths[part], kind="stable")]
        for part in np.split(order, range(pool, len(order), pool))])
    parts = np.split(ordered, range(batch, len(ordered), batch))
    return np.concatenate([parts[index] for index in numbers.permutation(len(parts))])


def _padded(rows: list[np.ndarray], labels: np.ndarray) -> Batch:
    longest = max(map(len, rows))
    ids = np.full([len(rows), longest], plain.PAD_ID, np.int64)
    for line, row in zip(ids, rows, strict=True):
        line[:len(row)] = row
    tokens = torch.from_numpy(ids)
    return tokens, tokens != plain.PAD_ID, torch.from_numpy(labels.astype(np.int64))


if __name__ == "__main__":
    serve(prepare)
