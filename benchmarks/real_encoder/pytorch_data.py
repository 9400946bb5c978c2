"""Reads the files of tasks as rows of token ids, with Hugging Face's tokenizer."""

import json
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

Row = dict[str, Any]
"""Token "ids", segment "types", and "label", the words' "first" pieces and "tags", or "span"."""
TABLES = {"mrpc": ("Quality", "#1 String", "#2 String"), "rte": ("label", "sentence1", "sentence2"),
          "stsb": ("score", "sentence1", "sentence2"), "sst2": ("label", "sentence"),
          "cola": (1, 3)}
"""Task -> columns of its label and its texts; CoLA's file has no header."""
_STRIDE = 128  # Pieces between the starts of windows over a context.
_POOL_BATCHES = 50  # Batches whose rows are sorted by length together.
_MAX_ANSWER, _BEAM = 30, 20  # Pieces of an answer; starts and ends that are considered.


def kind_of(task: str) -> str:
    """Returns "numbers", "labels", "words" or "questions"."""
    return {"stsb": "numbers", "chunk": "words", "squad": "questions"}.get(task, "labels")


def read(task: str, path: pathlib.Path, tokenizer: Any, max_length: int) -> list[Row]:
    """Reads a file of GLUE, CoNLL-2000 or SQuAD."""
    text = path.read_text("utf-8-sig")
    rows = {"words": _tagged, "questions": _questions}.get(kind_of(task))
    return list(rows(text, tokenizer, max_length) if rows else
                _table(text, TABLES[task], tokenizer, max_length))


def _table(text: str, columns: tuple, tokenizer: Any, max_length: int) -> Iterable[Row]:
    lines = [line.split("\t") for line in text.strip("\n").split("\n")]
    if isinstance(columns[0], str):
        header = lines.pop(0)
        columns = tuple(map(header.index, columns))
    for line in lines:
        label, *texts = (line[column] for column in columns)
        encoded = tokenizer(*texts, truncation=True, max_length=max_length)
        yield {"ids": encoded.input_ids, "types": encoded.token_type_ids, "label": label}


def _tagged(text: str, tokenizer: Any, max_length: int) -> Iterable[Row]:
    for sentence in text.strip().split("\n\n"):
        words, _, tags = zip(*map(str.split, sentence.split("\n")), strict=True)
        encoded = tokenizer(list(words), is_split_into_words=True)
        numbers = encoded.word_ids()
        assert len(numbers) <= max_length, "a sentence is longer than a row"
        yield {"ids": encoded.input_ids, "types": encoded.token_type_ids, "tags": tags,
               "first": [numbers.index(word) for word in range(len(words))]}


def _questions(text: str, tokenizer: Any, max_length: int) -> Iterable[Row]:
    contexts = [paragraph for article in json.loads(text)["data"]
                for paragraph in article["paragraphs"]]
    for context, question in ((part["context"], question) for part in contexts
                              for question in part["qas"]):
        room = max_length - 3 - len(tokenizer.tokenize(question["question"]))
        windows = tokenizer(
            question["question"], context, truncation="only_second", max_length=max_length,
            stride=max(0, room - _STRIDE), return_overflowing_tokens=True,
            return_offsets_mapping=True)
        begin = question["answers"][0]["answer_start"]
        end = begin + len(question["answers"][0]["text"])
        for ids, types, offsets in zip(windows.input_ids, windows.token_type_ids,
                                       windows.offset_mapping, strict=True):
            touched = [index for index in range(len(ids) - 1) if types[index]
                       and offsets[index][1] > begin and offsets[index][0] < end]
            inside = (touched and offsets[touched[0]][0] <= begin
                      and offsets[touched[-1]][1] >= end)
            yield {"ids": ids, "types": types, "offsets": offsets, "context": context,
                   "key": question["id"],
                   "span": (touched[0], touched[-1]) if inside else (0, 0)}  # [CLS] is at 0.


def best_answers(rows: list[Row], logits: list[torch.Tensor]) -> dict[str, str]:
    """Returns the most probable answer to each question over its windows, [n, 2] logits each."""
    best: dict[str, tuple[float, str]] = {}
    for row, scores in zip(rows, logits, strict=True):
        log_probabilities = scores.log_softmax(0)
        starts, ends = log_probabilities.topk(min(_BEAM, len(scores)), dim=0).indices.T.tolist()
        values = log_probabilities.tolist()
        answer = max(((values[start][0] + values[end][1],
                       row["context"][row["offsets"][start][0]:row["offsets"][end][1]])
                      for start in starts for end in ends if row["types"][start]
                      and start <= end < min(start + _MAX_ANSWER, len(row["ids"]) - 1)),
                     default=(-1e30, ""))
        best[row["key"]] = max(best.get(row["key"], answer), answer)
    return {key: text for key, (_, text) in best.items()}


def plan_epoch(rows: list[Row], size: int, order: str,
               numbers: np.random.Generator) -> list[np.ndarray]:
    """Returns the indices of every batch's rows; "sorted" batches have rows of similar length."""
    shuffled = numbers.permutation(len(rows))
    lengths = np.array([len(row["ids"]) for row in rows])
    pool = _POOL_BATCHES * size if order == "sorted" else size
    pools = [shuffled[begin:begin + pool] for begin in range(0, len(rows), pool)]
    batches = [part[np.argsort(lengths[part], kind="stable")][first:first + size]
               for part in pools for first in range(0, len(part), size)]
    return [batches[index] for index in numbers.permutation(len(batches))]
