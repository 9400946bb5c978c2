"""Measures how fast a classifier answers texts, from strings to probabilities.

    .venv/bin/python -m benchmarks.serving served/sst2/1 sentences.txt
    .venv/bin/python -m benchmarks.serving onnx/sst2 sentences.txt
    .venv-peers/bin/python -m benchmarks.serving sst2_hf sentences.txt bfloat16

Prints percentiles of the time for one text, the time for all texts in batches, and the mean of
their first probability, by which the systems' answers are compared.
"""

import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable

Answer = Callable[[list[str]], list[list[float]]]  # Maps texts to the probabilities of all classes.
BATCH, MAX_LENGTH = 32, 128
"""Texts of a batch, and the tokens that Hugging Face's tokenizer keeps, as an export does."""


def export(directory: pathlib.Path) -> Answer:
    """Loads a version of a SavedModel as the server does, or an ONNX directory."""
    # oneDNN keeps packed copies of the weights; docs/how_to/serving.md recommends this.
    os.environ["TF_ONEDNN_ASSUME_FROZEN_WEIGHTS"] = "1"
    if (directory / "model.onnx").exists():
        from electra_tf.export.onnx_runtime import OnnxModel

        model = OnnxModel(directory)
        return lambda batch: model.answer(batch)["probabilities"].tolist()
    import numpy as np

    from electra_tf.apps.serving import models

    signature = models.load(directory).signatures[models.DEFAULT_SIGNATURE]
    return lambda batch: signature.function(
        np.array([text.encode() for text in batch], object))["probabilities"].tolist()


def hugging_face(directory: str, precision: str) -> Answer:
    """Loads a classifier in PyTorch and its fast tokenizer; int8 is dynamic quantization."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForSequenceClassification.from_pretrained(
        directory, attn_implementation="sdpa").eval()
    model = (torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
             if precision == "int8" else model.to(getattr(torch, precision)))

    def answer(batch: list[str]) -> list[list[float]]:
        rows = tokenizer(batch, padding=True, truncation=True, max_length=MAX_LENGTH,
                         return_tensors="pt")
        with torch.inference_mode():
            return torch.softmax(model(**rows).logits.float(), dim=-1).tolist()

    return answer


def main(directory: str, file: str, precision: str = "") -> None:
    """Answers the lines of a file one by one and in batches; the first pass is not measured."""
    texts = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    answer = (hugging_face(directory, precision) if precision
              else export(pathlib.Path(directory)))
    for size in (1, BATCH):
        for _ in range(2):
            seconds, probabilities = [], []
            for first in range(0, len(texts), size):
                begin = time.perf_counter()
                rows = answer(texts[first:first + size])
                seconds.append(time.perf_counter() - begin)
                probabilities += [row[0] for row in rows]
        ordered = sorted(1e3 * second for second in seconds)
        print(f"{size} a call: p50 {ordered[len(ordered) // 2]:.2f} ms, p99 "
              f"{ordered[len(ordered) * 99 // 100]:.2f} ms, all {sum(seconds):.2f} s, mean "
              f"probability {statistics.fmean(probabilities):.6f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
