"""Fine-tunes a BERT encoder in a plain PyTorch loop, and writes its predictions on dev.

    python -m benchmarks.real_encoder.pytorch_loop '{"task": "mrpc", "encoder": DIRECTORY, ...}'

Head, loss, optimizer and schedule are those of `run_finetuning.py` with --layerwise_decay=1,
optimizer.bias_correction=true and task.ends_given_starts=false.
"""

import json
import pathlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from transformers import AutoTokenizer, BertForTokenClassification

Row = dict[str, Any]
"""Token "ids", segment "types", and "label", the words' "first" pieces and "tags", or "span"."""
KINDS = {"stsb": "numbers", "chunk": "words", "squad": "questions"}
"""Kinds of tasks; others have labels."""
COLUMNS = {"mrpc": ("Quality", "#1 String", "#2 String"),
           "rte": ("label", "sentence1", "sentence2"), "stsb": ("score", "sentence1", "sentence2"),
           "sst2": ("label", "sentence"), "cola": (1, 3)}
"""Task -> columns of its label and its texts; CoLA's file has no header."""
BATCH, POOL_BATCHES = 32, 50
"""Rows of a batch, and batches whose rows are sorted by length together."""
STRIDE = 128  # Pieces between the starts of windows over a context.
MAX_ANSWER, BEAM = 30, 20  # Pieces of an answer; starts and ends that are considered.


def read(task: str, path: pathlib.Path, tokenizer: Any, max_length: int) -> Iterable[Row]:
    """Reads a file of GLUE, CoNLL-2000 or SQuAD."""
    text = path.read_text("utf-8-sig")
    if task == "squad":
        yield from _read_questions(json.loads(text), tokenizer, max_length)
        return
    if task == "chunk":
        for sentence in text.strip().split("\n\n"):
            words, _, tags = zip(*map(str.split, sentence.split("\n")), strict=True)
            encoded = tokenizer(list(words), is_split_into_words=True)
            numbers = encoded.word_ids()
            assert len(numbers) <= max_length, "a sentence is longer than a row"
            yield {"ids": encoded.input_ids, "types": encoded.token_type_ids, "tags": tags,
                   "first": [numbers.index(word) for word in range(len(words))]}
        return
    lines, columns = [line.split("\t") for line in text.strip("\n").split("\n")], COLUMNS[task]
    if task != "cola":
        columns = tuple(map(lines.pop(0).index, columns))
    for label, *texts in ([line[column] for column in columns] for line in lines):
        encoded = tokenizer(*texts, truncation=True, max_length=max_length)
        yield {"ids": encoded.input_ids, "types": encoded.token_type_ids, "label": label}


def _read_questions(content: Any, tokenizer: Any, max_length: int) -> Iterable[Row]:
    """Yields a row for every window over a question's context."""
    for context, question in ((part["context"], question) for article in content["data"]
                              for part in article["paragraphs"] for question in part["qas"]):
        space = max_length - 3 - len(tokenizer.tokenize(question["question"]))
        windows = tokenizer(
            question["question"], context, truncation="only_second", max_length=max_length,
            stride=max(0, space - STRIDE), return_overflowing_tokens=True,
            return_offsets_mapping=True)
        begin = question["answers"][0]["answer_start"]
        end = begin + len(question["answers"][0]["text"])
        for ids, types, offsets in zip(windows.input_ids, windows.token_type_ids,
                                       windows.offset_mapping, strict=True):
            # The pieces of the answer; [CLS], at 0, if the window does not have all of it.
            touched = [index for index in range(len(ids) - 1) if types[index]
                       and offsets[index][1] > begin and offsets[index][0] < end]
            inside = (touched and offsets[touched[0]][0] <= begin
                      and offsets[touched[-1]][1] >= end)
            yield {"ids": ids, "types": types, "offsets": offsets, "context": context,
                   "key": question["id"], "span": (touched[0], touched[-1]) if inside else (0, 0),
                   "answers": [answer["text"] for answer in question["answers"]]}


def outputs(model: BertForTokenClassification, batch: dict[str, torch.Tensor], kind: str,
            precision: str) -> torch.Tensor:
    """Returns float32 logits: [B, labels], [words, labels], or [B, L, 2] of start and end."""
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        logits = model(batch["ids"], attention_mask=batch["valid"],
                       token_type_ids=batch["types"]).logits.float()
    if kind == "words":
        return logits[batch["row"], batch["first"]]
    if kind != "questions":
        return logits[:, 0]
    allowed = (batch["types"] > 0) & batch["valid"]  # An answer is in the context;
    allowed[:, 0] = True  # [CLS] stands for none.
    return logits + torch.where(allowed, 0.0, -1000.0)[..., None]


def make_batch(rows: list[Row], kind: str, labels: list[str]) -> dict[str, torch.Tensor]:
    """Pads rows to the longest one."""
    batch = torch.zeros(3, len(rows), max(len(row["ids"]) for row in rows), dtype=torch.long)
    for number, row in enumerate(rows):
        batch[:, number, :len(row["ids"])] = torch.tensor(
            [row["ids"], row["types"], [1] * len(row["ids"])])
    tensors = {"ids": batch[0], "types": batch[1], "valid": batch[2] > 0}
    if kind == "words":
        tensors["row"], tensors["first"] = torch.tensor([
            (number, first) for number, row in enumerate(rows) for first in row["first"]]).T
    tensors["target"] = torch.tensor({
        "numbers": lambda: [float(row["label"]) / 5.0 for row in rows],
        "labels": lambda: [labels.index(row["label"]) for row in rows],
        "words": lambda: [labels.index(tag) if tag in labels else 0
                          for row in rows for tag in row["tags"]],
        "questions": lambda: [row["span"] for row in rows]}[kind]())
    return tensors


def plan_epoch(rows: list[Row], numbers: np.random.Generator) -> list[np.ndarray]:
    """Returns the indices of every batch's rows, which have similar lengths."""
    shuffled, pool = numbers.permutation(len(rows)), POOL_BATCHES * BATCH
    lengths = np.array([len(row["ids"]) for row in rows])
    pools = [shuffled[begin:begin + pool] for begin in range(0, len(rows), pool)]
    batches = [part[np.argsort(lengths[part], kind="stable")][first:first + BATCH]
               for part in pools for first in range(0, len(part), BATCH)]
    return [batches[index] for index in numbers.permutation(len(batches))]


def train(model: BertForTokenClassification, rows: list[Row], labels: list[str], kind: str,
          settings: Mapping[str, Any]) -> None:
    """Trains for all epochs."""
    # AdamW without decay of biases and layer norms; warm-up over a tenth of the steps.
    num_steps = int(-(-len(rows) // BATCH) * settings["epochs"])
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW([
        {"params": [value for value in parameters if value.ndim > 1], "weight_decay": 0.01},
        {"params": [value for value in parameters if value.ndim <= 1], "weight_decay": 0.0},
    ], lr=settings["learning_rate"], eps=1e-6, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: (1 - step / num_steps) * min(1, step / (0.1 * num_steps)))
    numbers, batches = np.random.default_rng(settings["seed"]), []
    while len(batches) < num_steps:
        batches += plan_epoch(rows, numbers)
    model.train()
    for number, indices in enumerate(batches[:num_steps], start=1):
        batch = make_batch([rows[index] for index in indices], kind, labels)
        logits = outputs(model, batch, kind, settings["precision"])
        loss = (functional.mse_loss(logits[:, 0], batch["target"]) if kind == "numbers"
                else functional.cross_entropy(logits, batch["target"]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        schedule.step()
        if number % 50 == 0 or number == num_steps:
            print(f"step {number}/{num_steps} loss {loss.item():.4f}", flush=True)


def predict(model: BertForTokenClassification, rows: list[Row], labels: list[str], kind: str,
            precision: str) -> Any:
    """Returns the predictions of rows: labels, numbers, lists of tags, or answers by key."""
    model.eval()
    # Logits in batches of similar length, then in the rows' order.
    logits_of: dict[int, torch.Tensor] = {}
    order = np.argsort([-len(row["ids"]) for row in rows], kind="stable")
    for begin in range(0, len(rows), BATCH):
        part = [rows[index] for index in order[begin:begin + BATCH]]
        with torch.inference_mode():
            logits = outputs(model, make_batch(part, kind, labels), kind, precision)
        if kind == "words":
            logits = logits.split([len(row["first"]) for row in part])
        logits_of.update(zip(order[begin:begin + BATCH].tolist(), logits, strict=True))
    values = [logits_of[index] for index in range(len(rows))]
    if kind == "questions":
        return best_answers(rows, values)
    if kind == "words":
        return [[labels[index] for index in value.argmax(1).tolist()] for value in values]
    return [labels[int(value.argmax())] if labels else 5.0 * float(value) for value in values]


def best_answers(rows: list[Row], logits: list[torch.Tensor]) -> dict[str, str]:
    """Returns the most probable answer to each question over its windows, [L, 2] logits each."""
    best: dict[str, tuple[float, str]] = {}
    for row, scores in zip(rows, logits, strict=True):
        log_probabilities = scores[:len(row["ids"])].log_softmax(0)
        starts, ends = log_probabilities.topk(
            min(BEAM, len(log_probabilities)), dim=0).indices.T.tolist()
        values = log_probabilities.tolist()
        answer = max(((values[start][0] + values[end][1],
                       row["context"][row["offsets"][start][0]:row["offsets"][end][1]])
                      for start in starts for end in ends if row["types"][start]
                      and start <= end < min(start + MAX_ANSWER, len(row["ids"]) - 1)),
                     default=(-1e30, ""))
        best[row["key"]] = max(best.get(row["key"], answer), answer)
    return {key: text for key, (_, text) in best.items()}


def main(settings: Mapping[str, Any]) -> None:
    """Trains for all epochs, and writes dev's labels and predictions as JSON."""
    torch.set_num_threads(1)
    torch.manual_seed(settings["seed"])
    kind = KINDS.get(settings["task"], "labels")
    # Rows of token ids, and the labels.
    tokenizer = AutoTokenizer.from_pretrained(settings["encoder"])
    rows, dev = (list(read(settings["task"], pathlib.Path(settings[split]), tokenizer,
                           settings["max_seq_length"])) for split in ("train", "dev"))
    labels = sorted({label for row in rows for label in (
        row["tags"] if kind == "words" else [row["label"]] if kind == "labels" else [])})
    # The encoder with a dense layer on every piece; `outputs` takes [CLS] or the words' first ones.
    model = BertForTokenClassification.from_pretrained(
        settings["encoder"], num_labels={"questions": 2, "numbers": 1}.get(kind, len(labels)),
        classifier_dropout=0.0 if kind == "questions" else 0.1, attn_implementation="sdpa")
    torch.nn.init.xavier_uniform_(model.classifier.weight)
    torch.nn.init.zeros_(model.classifier.bias)
    train(model, rows, labels, kind, settings)
    gold = ({row["key"]: row["answers"] for row in dev} if kind == "questions" else
            [row["tags"] if kind == "words" else row["label"] for row in dev])
    pathlib.Path(settings["output"]).write_text(json.dumps({
        "gold": gold, "predictions": predict(model, dev, labels, kind, settings["precision"])}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
