"""Worker: `ElectraForSequenceClassification` in PyTorch behind the fast tokenizer.

Runs in the peers' environment.
"""

import pathlib

import torch
import transformers
from transformers import AutoTokenizer, ElectraForSequenceClassification

from benchmarks.harness.worker import Ready, serve
from benchmarks.serving.answers import MAX_LENGTH, turn_of


def prepare(directory: str, texts: str, threads: int, precision: str, autocast: bool) -> Ready:
    """Loads model and tokenizer; bfloat16 by autocast, or by converting the weights."""
    torch.set_num_threads(threads)
    path = pathlib.Path(directory) / "hugging_face"
    tokenizer = AutoTokenizer.from_pretrained(path)
    if not tokenizer.is_fast:
        raise TypeError("AutoTokenizer gave the slow tokenizer")
    model = ElectraForSequenceClassification.from_pretrained(
        path, attn_implementation="sdpa").eval()
    half = precision == "bfloat16"
    if half and not autocast:
        model = model.to(torch.bfloat16)
    # Not a context around each call, which would turn the weights into bfloat16 every time.
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled("cpu", autocast)
    names = model.config.id2label

    def rows(asked: list[str]) -> transformers.BatchEncoding:
        return tokenizer(asked, padding=True, truncation=True, max_length=MAX_LENGTH,
                         return_tensors="pt")

    def answer(asked: list[str]) -> tuple[list[str], list[list[float]]]:
        with torch.inference_mode():
            logits = model(**rows(asked)).logits.float()
            shares = torch.softmax(logits, dim=-1).numpy()
        return [names[index] for index in shares.argmax(axis=-1).tolist()], shares.tolist()

    how = f", {'autocast' if autocast else 'converted'}" if half else ""
    return Ready(
        label=f"{precision}{how}",
        versions={"PyTorch": torch.__version__, "transformers": transformers.__version__},
        turn=turn_of(texts, answer, lambda asked: rows(asked)["attention_mask"].sum(1).tolist()))


if __name__ == "__main__":
    serve(prepare)
