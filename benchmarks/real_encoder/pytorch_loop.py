"""Fine-tunes a BERT encoder in a plain PyTorch loop, and writes its predictions on dev.

    python -m benchmarks.real_encoder.pytorch_loop --task=mrpc --encoder=DIRECTORY \
        --train=train.tsv --dev=dev.tsv --output=predictions.json

Head, loss, optimizer and schedule are those of `run_finetuning.py` with --layerwise_decay=1,
optimizer.bias_correction=true and task.ends_given_starts=false.
"""

import argparse
import json
import pathlib
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoTokenizer, BertModel

from benchmarks.real_encoder.pytorch_data import Row, best_answers, kind_of, plan_epoch, read


class Model(torch.nn.Module):
    """The encoder and a dense layer, on [CLS], on the words' first pieces or on all pieces."""

    def __init__(self, directory: pathlib.Path, kind: str, num_labels: int):
        super().__init__()
        self.kind = kind
        self.bert = BertModel.from_pretrained(directory, add_pooling_layer=False,
                                              attn_implementation="sdpa")
        self.dropout = torch.nn.Dropout(0.0 if kind == "questions" else 0.1)
        self.dense = torch.nn.Linear(self.bert.config.hidden_size,
                                     {"questions": 2, "numbers": 1}.get(kind, num_labels))
        torch.nn.init.xavier_uniform_(self.dense.weight)
        torch.nn.init.zeros_(self.dense.bias)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns float32 logits: [B, labels], [words, labels], or [B, L, 2] of start and end."""
        hidden = self.bert(batch["ids"], attention_mask=batch["valid"],
                           token_type_ids=batch["types"]).last_hidden_state
        if self.kind == "words":
            hidden = hidden[batch["row"], batch["first"]]
        elif self.kind != "questions":
            hidden = hidden[:, 0]
        logits = self.dense(self.dropout(hidden)).float()
        if self.kind == "questions":  # An answer is in the context; [CLS] stands for none.
            allowed = (batch["types"] > 0) & batch["valid"]
            allowed[:, 0] = True
            logits = logits + torch.where(allowed, 0.0, -1000.0)[..., None]
        return logits


class Loop:
    """A model in training."""

    def __init__(self, encoder: pathlib.Path, task: str, rows: list[Row], *, precision: str,
                 learning_rate: float, num_steps: int, seed: int):
        torch.manual_seed(seed)
        self.kind, self.bfloat16 = kind_of(task), precision == "bfloat16"
        labels = {"words": lambda: {tag for row in rows for tag in row["tags"]},
                  "labels": lambda: {row["label"] for row in rows}}.get(self.kind, set)
        self.labels = sorted(labels())
        self.model = Model(encoder, self.kind, len(self.labels))
        parameters = list(self.model.parameters())
        self.optimizer = torch.optim.AdamW([
            {"params": [value for value in parameters if value.ndim > 1], "weight_decay": 0.01},
            {"params": [value for value in parameters if value.ndim <= 1], "weight_decay": 0.0},
        ], lr=learning_rate, eps=1e-6, fused=True)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: (1 - step / num_steps) * min(1, step / (0.1 * num_steps)))

    def step(self, rows: list[Row]) -> float:
        """Trains on a batch and returns its loss."""
        self.model.train()
        batch = self.batch(rows)
        logits, target = self.logits(batch), batch["target"]
        loss = (functional.mse_loss(logits[:, 0], target) if self.kind == "numbers" else
                functional.cross_entropy(logits, target))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def logits(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns the model's logits in the loop's precision."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            return self.model(batch)

    def batch(self, rows: list[Row]) -> dict[str, torch.Tensor]:
        """Pads rows to the longest one."""
        batch = torch.zeros(3, len(rows), max(len(row["ids"]) for row in rows), dtype=torch.long)
        for number, row in enumerate(rows):
            batch[:, number, :len(row["ids"])] = torch.tensor(
                [row["ids"], row["types"], [1] * len(row["ids"])])
        tensors = {"ids": batch[0], "types": batch[1], "valid": batch[2] > 0}
        if self.kind == "words":
            tensors["row"], tensors["first"] = torch.tensor([
                (number, first) for number, row in enumerate(rows) for first in row["first"]]).T
        tensors["target"] = torch.tensor({
            "numbers": lambda: [float(row["label"]) / 5.0 for row in rows],
            "labels": lambda: [self.labels.index(row["label"]) for row in rows],
            "words": lambda: [self.labels.index(tag) if tag in self.labels else 0
                              for row in rows for tag in row["tags"]],
            "questions": lambda: [row["span"] for row in rows]}[self.kind]())
        return tensors

    def predict(self, rows: list[Row], size: int) -> Any:
        """Returns the predictions of rows: labels, numbers, lists of tags, or answers by key."""
        self.model.eval()
        outputs: dict[int, torch.Tensor] = {}
        order = np.argsort([-len(row["ids"]) for row in rows], kind="stable")
        for begin in range(0, len(rows), size):
            part = [rows[index] for index in order[begin:begin + size]]
            with torch.inference_mode():
                logits = self.logits(self.batch(part))
            if self.kind == "words":
                logits = logits.split([len(row["first"]) for row in part])
            outputs.update(zip(order[begin:begin + size].tolist(), logits, strict=True))
        values = [outputs[index] for index in range(len(rows))]
        if self.kind == "questions":
            return best_answers(rows, [value[:len(row["ids"])] for row, value in
                                       zip(rows, values, strict=True)])
        if self.kind == "words":
            return [[self.labels[index] for index in value.argmax(1).tolist()] for value in values]
        return [self.labels[int(value.argmax())] if self.labels else 5.0 * float(value)
                for value in values]


def main() -> None:
    """Trains for all epochs and writes the predictions as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--task", required=True)
    for name in ("encoder", "train", "dev", "output"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name, value in {
            "num_train_epochs": 3.0, "learning_rate": 1e-4, "seed": 1, "train_batch_size": 32,
            "max_seq_length": 128, "threads": 1, "precision": "bfloat16",
            "order": "sorted"}.items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    values = parser.parse_args()
    torch.set_num_threads(values.threads)
    tokenizer = AutoTokenizer.from_pretrained(values.encoder)
    rows, dev = (read(values.task, path, tokenizer, values.max_seq_length)
                 for path in (values.train, values.dev))
    num_steps = int(-(-len(rows) // values.train_batch_size) * values.num_train_epochs)
    loop = Loop(values.encoder, values.task, rows, precision=values.precision, seed=values.seed,
                learning_rate=values.learning_rate, num_steps=num_steps)
    numbers, batches = np.random.default_rng(values.seed), []
    while len(batches) < num_steps:
        batches += plan_epoch(rows, values.train_batch_size, values.order, numbers)
    for number, batch in enumerate(batches[:num_steps], start=1):
        loss = loop.step([rows[index] for index in batch])
        if number % 50 == 0 or number == num_steps:
            print(f"step {number}/{num_steps} loss {loss:.4f}", flush=True)
    values.output.write_text(json.dumps(
        {"rows": len(rows), "predictions": loop.predict(dev, values.train_batch_size)}))


if __name__ == "__main__":
    main()
