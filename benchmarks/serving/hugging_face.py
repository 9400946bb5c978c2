"""Runs `ElectraForSequenceClassification` in PyTorch after the fast tokenizer.

Runs in the environment of `make peers`.
"""

import pathlib

import torch
import transformers
from transformers import AutoTokenizer, ElectraForSequenceClassification

from benchmarks.harness.worker import Ready
from benchmarks.serving.answers import MAX_LENGTH, turn_of
from electra_tf.platform.machine import usable_cores


def prepare(directory: str, texts: dict[str, list[str]], precision: str) -> Ready:
    """Loads model and tokenizer, and converts the weights."""
    torch.set_num_threads(usable_cores())
    path = pathlib.Path(directory) / "hugging_face"
    tokenizer = AutoTokenizer.from_pretrained(path)
    model = ElectraForSequenceClassification.from_pretrained(
        path, attn_implementation="sdpa").eval()
    if precision == "int8":
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
    else:
        model = model.to(getattr(torch, precision))
    names = model.config.id2label

    def answer(batch: list[str]) -> tuple[list[str], list[list[float]]]:
        rows = tokenizer(batch, padding=True, truncation=True, max_length=MAX_LENGTH,
                         return_tensors="pt")
        with torch.inference_mode():
            probabilities = torch.softmax(model(**rows).logits.float(), dim=-1).numpy()
        labels = [names[index] for index in probabilities.argmax(axis=-1).tolist()]
        return labels, probabilities.tolist()

    return Ready(
        label=precision,
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        turn=turn_of(texts, answer))
