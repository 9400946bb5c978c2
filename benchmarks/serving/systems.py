"""Answers texts by every system of the serving benchmark, from strings to probabilities.

Libraries are imported where they are used, because PyTorch has an environment of its own.
"""

import os
import pathlib
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from benchmarks import system
from electra_tf.core.machine import usable_cores

BATCHES = (1, 32)
Answer = Callable[[list[str]], list[list[float]]]
"""Maps texts to the probabilities of all classes."""


def prepare(directory: str, files: list[str], max_length: int, precision: str = "") -> system.Work:
    """Returns the calls for the lines of text files, one by one and in batches."""
    texts = {file: pathlib.Path(file).read_text(encoding="utf-8").splitlines() for file in files}
    library, answer = (_hugging_face(directory, precision, max_length) if precision
                       else _export(pathlib.Path(directory)))

    def work() -> Mapping[str, Any]:
        line: dict[str, Any] = {"probabilities": [], "versions": {
            library: metadata.version(library)}}
        line["label"] = f"Hugging Face {precision}" if precision else f"export {directory}"
        for file, batch in ((file, batch) for file in files for batch in BATCHES):
            seconds = line[f"{file}/{batch}"] = []
            for first in range(0, len(texts[file]), batch):
                begin = time.perf_counter()
                probabilities = answer(texts[file][first:first + batch])
                seconds.append(time.perf_counter() - begin)
                line["probabilities"] += [row[0] for row in probabilities]
        return line

    return work


def _export(directory: pathlib.Path) -> tuple[str, Answer]:
    """Loads a version of a SavedModel or an ONNX directory as the server does."""
    # oneDNN keeps packed copies of the weights; docs/how_to/serving.md recommends this.
    os.environ["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] = "1"
    if (directory / "model.onnx").exists():
        from electra_tf.export.onnx_runtime import OnnxModel

        model = OnnxModel(directory)
        return "onnxruntime", lambda batch: model.answer(batch)["probabilities"].tolist()
    import numpy as np

    from electra_tf.apps.serving import models

    signature = models.load(directory).signatures[models.DEFAULT_SIGNATURE]
    return "tensorflow", lambda batch: signature.function(
        np.array([text.encode() for text in batch], object))["probabilities"].tolist()


def _hugging_face(directory: str, precision: str, max_length: int) -> tuple[str, Answer]:
    """Loads a classifier in PyTorch and its fast tokenizer; int8 is dynamic quantization."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.set_num_threads(usable_cores())
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(
        directory, attn_implementation="sdpa").eval()
    model = (torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
             if precision == "int8" else model.to(getattr(torch, precision)))

    def answer(batch: list[str]) -> list[list[float]]:
        rows = tokenizer(batch, padding=True, truncation=True, max_length=max_length,
                         return_tensors="pt")
        with torch.inference_mode():
            return torch.softmax(model(**rows).logits.float(), dim=-1).tolist()

    return "torch", answer


if __name__ == "__main__":
    system.run(prepare)
